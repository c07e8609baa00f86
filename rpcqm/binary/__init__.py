"""Queue managers talk to each other ([MS-MQQB]); only `connection` knows sockets and queues."""
