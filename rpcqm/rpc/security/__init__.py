"""Who a peer is, and how its PDUs are protected: NTLM, Kerberos, SPNEGO."""
