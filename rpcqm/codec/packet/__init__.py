"""Message packets: their headers, and the attributes that they hold."""
