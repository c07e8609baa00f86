"""COM objects over DCE/RPC ([MS-DCOM], [MS-OAUT]): references, activation, automation."""
