"""The keys by which signatures of messages are checked.

The certificate comes with the message, so that any stranger chooses the key, and with it how long
the check takes, while nothing else is done (G190, G520).
"""

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.dsa import DSAPublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

VerifyingKey = DSAPublicKey | RSAPublicKey

KEY_BITS = 4_096
"""Key of the certificate that comes with a signature.

Longer keys take tens of milliseconds.

Bound `signatures.key_bits` [bits]: a message over HTTP counts as unsigned, one at port 1801 as
wrongly signed.
"""
EXPONENT_BITS = 64
"""Public exponent of an RSA key that comes with a signature.

Everybody's exponent has 17 bits; OpenSSL takes none beyond 64 with keys beyond 3,072.

Bound `signatures.exponent_bits` [bits]: a message over HTTP counts as unsigned, one at port 1801 as
wrongly signed.
"""


def verifying_key(certificate: bytes) -> VerifyingKey | None:
    """The RSA or DSA key of a certificate in DER.

    None for octets that are no certificate, for a key of another kind, and for one that takes long.
    """
    try:
        key = x509.load_der_x509_certificate(certificate).public_key()
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion):
        # What is no certificate that we understand tells no key.
        return None
    if isinstance(key, RSAPublicKey):
        exponent = key.public_numbers().e.bit_length()
        return key if key.key_size <= KEY_BITS and exponent <= EXPONENT_BITS else None
    return key if isinstance(key, DSAPublicKey) and key.key_size <= KEY_BITS else None
