"""Images of handwritten digits for mnist.py and mnist_keras.py: those of MNIST's files, or such as are drawn here."""
import gzip
import math
import struct
import zlib

import numpy as np

SIDE = 28
# Zero to nine, five columns each.
GLYPHS = """
.###. ..#.. .###. ##### ...#. ##### ..##. ##### .###. .###.
#...# .##.. #...# ...#. ..##. #.... .#... ....# #...# #...#
#..## ..#.. ....# ..#.. .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ...#. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# .#... #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ...#.
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .##..
"""


class BadFile(Exception):
    """A file of MNIST that is missing or broken. The text names it."""


def read_idx(path, dimensions):
    """A file in MNIST's format IDX, as an array of bytes: a magic number of two zeros, the type (8: bytes) and the
    number of dimensions; the dimensions, each of four bytes, the highest first; the values."""
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise BadFile(f"{path} cannot be read: {error}") from None
    begin = 4 + 4 * dimensions
    magic = 0x0800 + dimensions
    if len(data) < begin:
        raise BadFile(f"{path} is no IDX file: it has {len(data)} bytes, and its header alone would have {begin}")
    found, *shape = struct.unpack(f">{1 + dimensions}I", data[:begin])
    if found != magic:
        raise BadFile(f"{path} is no IDX file of {dimensions} dimensions: it begins with {found:#x}, not {magic:#x}")
    expected = begin + math.prod(shape)
    if len(data) != expected:
        by_shape = " x ".join(map(str, shape))
        raise BadFile(f"{path} has {len(data)} bytes, and {by_shape} values would make {expected}: fetch it again")
    return np.frombuffer(bytearray(data), np.uint8, offset=begin).reshape(shape)


def read_digits(folder, kind):
    """Images and labels of kind "train" or "t10k"."""
    if not folder.is_dir():
        raise BadFile(f"there is no directory {folder}")
    paths = []
    for name in (f"{kind}-images-idx3-ubyte", f"{kind}-labels-idx1-ubyte"):
        found = [path for path in (folder / name, folder / f"{name}.gz") if path.is_file()]
        if not found:
            raise BadFile(f"neither {name} nor {name}.gz is in {folder}")
        paths.append(found[0])
    images, labels = read_idx(paths[0], 3), read_idx(paths[1], 1)
    count, height, width = images.shape
    if (height, width) != (SIDE, SIDE) or count == 0:
        raise BadFile(f"{paths[0]} has {count} images of {height} x {width}; those of MNIST are {SIDE} x {SIDE}")
    if count != len(labels):
        raise BadFile(f"{paths[0]} has {count} images, and {paths[1]} has {len(labels)} labels")
    if labels.max() > 9:
        raise BadFile(f"{paths[1]} has the label {labels.max()}: digits are 0 to 9")
    return images, labels.astype(np.int64)


def draw_digits(count, seed):
    """Digits of GLYPHS, each shifted, scaled, turned and sheared by chance, with noise: images and labels, as
    read_digits() has them."""
    rows = GLYPHS.split("\n")[1:-1]
    small = np.array([[[row[6 * n + i] == "#" for i in range(5)] for row in rows] for n in range(10)], np.float32)
    large = np.kron(small, np.ones((1, 3, 3), np.float32))  # 21 x 15
    # One pixel more at each side, from which is read what lies outside.
    glyphs = np.pad(large, ((0, 0), (4, 5), (7, 8)))
    random = np.random.default_rng(seed)
    labels = random.integers(10, size=count)
    images = np.empty((count, SIDE, SIDE), np.uint8)
    for begin in range(0, count, 1000):
        part = slice(begin, min(begin + 1000, count))
        images[part] = draw_some(glyphs, labels[part], random)
    return images, labels


def draw_some(glyphs, labels, random):
    turn, shear, shift_x, shift_y = (random.random((4, len(labels), 1, 1), np.float32) - 0.5) * 0.5
    # What is read from, so a larger one makes a smaller digit.
    scale = 0.9 + 0.5 * random.random((len(labels), 1, 1), np.float32)
    cos, sin = scale * np.cos(turn), scale * np.sin(turn)
    y, x = np.meshgrid(*2 * [(2 * np.arange(SIDE, dtype=np.float32) + 1) / SIDE - 1], indexing="ij")

    def places(at):
        """From -1 to 1: the pixel before it in glyphs, and how far behind that one."""
        pixels = np.clip(((at + 1) * SIDE - 1) / 2 + 1, 0, SIDE + 0.999)
        return pixels.astype(np.int64), pixels % 1

    column, right = places(cos * x + (shear - sin) * y + shift_x)
    row, below = places(sin * x + cos * y + shift_y)
    which = labels[:, None, None]
    above_it = glyphs[which, row, column] * (1 - right) + glyphs[which, row, column + 1] * right
    below_it = glyphs[which, row + 1, column] * (1 - right) + glyphs[which, row + 1, column + 1] * right
    ink = above_it * (1 - below) + below_it * below
    ink += 0.25 * random.standard_normal(ink.shape, np.float32)
    return (np.clip(ink, 0, 1) * 255).astype(np.uint8)
