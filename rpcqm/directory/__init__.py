"""Queue managers, queues and sites of an Active Directory ([MS-MQDSSM]); off by default."""
