"""The process that compiles gives the same bits as those that load what it compiled."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def hashes(cache, dims):
    found = subprocess.run(
        [sys.executable, "-m", "tests.robustness.bits", *map(str, dims)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=3000,
    )
    return json.loads(found.stdout)


def check_bits(cache, dims):
    first, second = hashes(cache, dims), hashes(cache, dims)
    assert {name for name in first if first[name] != second[name]} == set()
    threads = {name for name in first if name.endswith(" three")}
    assert threads
    assert {n for n in threads if first[n] != first[n.removesuffix("three") + "one"]} == set()


def test_first_and_second_process_agree_bit_for_bit(tmp_path):
    check_bits(tmp_path, [2, 16])


@pytest.mark.slow
@pytest.mark.parametrize("d", range(1, 18))
def test_first_and_second_process_agree_for_every_length(tmp_path, d):
    check_bits(tmp_path, [d])
