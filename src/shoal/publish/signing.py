"""Sign bytes, and verify a signature: Ed25519 (RFC 8032), by `cryptography`, of the extra `sign`.

A manifest has the digest of every file beside it, so a signature of its bytes covers them all. Keys
are PEM files (PKCS #8 and SubjectPublicKeyInfo, RFC 8410), and a signature is the 64 bytes of
RFC 8032: OpenSSL makes and verifies the same.

References:
    Josefsson and Liusvaara, "Edwards-curve digital signature algorithm (EdDSA)", RFC 8032 (2017).
    doi:10.17487/RFC8032
"""

import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from shoal.errors import InputError
from shoal.io import folders


def new_keys(file: Path, *, passphrase: Path | None = None) -> Path:
    """Make a private key, readable by its owner alone, and `file.pub`, which is returned.

    No file is ever replaced. The first line of a passphrase's file encrypts the private key.
    """
    shown = file.with_name(f"{file.name}.pub")
    for path in (file, shown):
        if os.path.lexists(path):
            raise InputError(f"'{path}' exists already, and a key is never replaced.")
    key = Ed25519PrivateKey.generate()
    lock = (
        serialization.NoEncryption()
        if passphrase is None
        else serialization.BestAvailableEncryption(_first_line(passphrase))
    )
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    folders.write_bytes(file, private, force=False, confidential=True)
    try:
        folders.write_bytes(shown, public, force=False)
    except InputError:
        file.unlink(missing_ok=True)  # a key without its public one is of no use
        raise
    return shown


def sign(content: bytes, key: Path, *, passphrase: Path | None = None) -> bytes:
    """Sign bytes with a private key, a PEM file that the first line of another may open."""
    raw, opens = _read(key), None if passphrase is None else _first_line(passphrase)
    try:
        private = serialization.load_pem_private_key(raw, opens)
    except TypeError:
        needed = "expected its passphrase" if opens is None else "the key has no passphrase"
        raise InputError(f"Cannot open the key '{key}': {needed}.") from None
    except (ValueError, UnsupportedAlgorithm):
        why = "" if passphrase is None else "the passphrase is wrong, or "
        raise InputError(
            f"Cannot open the key '{key}': {why}it is not a private key in PEM form. Make one with "
            "`shoal keys new`."
        ) from None
    if not isinstance(private, Ed25519PrivateKey):
        raise InputError(f"Expected an Ed25519 key in '{key}', found one of another kind.")
    return private.sign(content)


def is_signed(content: bytes, signature: bytes, key: Path) -> bool:
    """Verify a signature of these bytes by a public key, a PEM file."""
    raw = _read(key)
    try:
        public = serialization.load_pem_public_key(raw)
    except (ValueError, UnsupportedAlgorithm):
        raise InputError(
            f"Expected a public key in PEM form in '{key}', as `shoal keys new` writes it beside "
            "the private one."
        ) from None
    if not isinstance(public, Ed25519PublicKey):
        raise InputError(f"Expected an Ed25519 key in '{key}', found one of another kind.")
    try:
        public.verify(signature, content)
    except InvalidSignature:
        return False
    return True


def _first_line(file: Path) -> bytes:
    lines = _read(file).splitlines()[:1]
    if not lines or not lines[0]:
        raise InputError(f"Expected a passphrase in the first line of '{file}', found none.")
    return lines[0]


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InputError(f"Cannot read '{file}': {reason}.") from None
