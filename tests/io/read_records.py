"""Reads a record file as docs/formats.md describes it, with nothing of Manyworlds' own code.

Usage: read_records.py FILE. Prints one JSON object: the fingerprint, the records, and the bytes skipped.
"""
import ctypes
import json
import struct
import sys

xxhash = ctypes.CDLL("libxxhash.so.0")
xxhash.XXH3_64bits_withSeed.restype = ctypes.c_uint64
xxhash.XXH3_64bits_withSeed.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]

HEADER_BYTES = 72
MAX_PAYLOAD_BYTES = 1 << 28


def checksum(data, seed=0):
    return xxhash.XXH3_64bits_withSeed(data, len(data), seed)


def read_file_header(data):
    """The fingerprint and the offset of the first record, or (None, 0)."""
    if data[:8] != b"MWRECLOG" or len(data) < 24:
        return None, 0
    version, length = struct.unpack_from("<II", data, 8)
    end = 16 + length
    if len(data) < end + 8 or struct.unpack_from("<Q", data, end)[0] != checksum(data[:end]):
        return None, 0
    assert version == 1, version
    return data[16:end].decode(), end + 8


def read_header(data, offset):
    header = data[offset:offset + HEADER_BYTES]
    if len(header) < HEADER_BYTES or header[:4] != b"MWRC":
        return None
    if struct.unpack_from("<Q", header, 64)[0] != checksum(header[:64], offset):
        return None
    kind, size, d0, d1, c0, c1, length, payload_checksum = struct.unpack_from("<IQQQQQQQ", header, 4)
    return (kind, size, [d0, d1], [c0, c1], length, payload_checksum) if size <= MAX_PAYLOAD_BYTES else None


def read_records(data, offset):
    records, skipped = [], 0
    while offset < len(data):
        header = read_header(data, offset)
        begin = offset
        if header is None:
            offset += 1
            while offset < len(data) and read_header(data, offset) is None:
                offset += 1
            skipped += offset - begin
            continue
        kind, size, digest, check, length, payload_checksum = header
        offset += HEADER_BYTES + size
        payload = data[begin + HEADER_BYTES:offset]
        if len(payload) < size or checksum(payload) != payload_checksum:
            offset = min(offset, len(data))
            skipped += offset - begin
            continue
        records.append({"kind": kind, "digest": digest, "check": check, "length": length, "payload": payload.hex()})
    return records, skipped


def main():
    data = open(sys.argv[1], "rb").read()
    fingerprint, offset = read_file_header(data)
    records, skipped = ([], len(data)) if fingerprint is None else read_records(data, offset)
    print(json.dumps({"fingerprint": fingerprint, "records": records, "skipped_bytes": skipped}))


main()
