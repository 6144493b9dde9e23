"""Files of digits in the format of MNIST."""

import gzip

import numpy as np


def write_idx(folder, name, values, packed):
    head = bytes([0, 0, 8, values.ndim]) + b"".join(n.to_bytes(4, "big") for n in values.shape)
    raw = head + values.astype(np.uint8).tobytes()
    if packed:
        (folder / f"{name}.gz").write_bytes(gzip.compress(raw))
    else:
        (folder / name).write_bytes(raw)
