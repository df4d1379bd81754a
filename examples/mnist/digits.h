// Images of handwritten digits: those of MNIST's files, or such that the program draws itself.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace mnist {

constexpr std::size_t kSide = 28;
constexpr std::size_t kPixels = kSide * kSide;
constexpr std::size_t kClasses = 10;

/// A file that is missing or broken. The text names it.
struct BadFile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The values of a file in the format IDX, row by row.
struct Idx {
  std::vector<std::uint32_t> shape;
  std::vector<std::uint8_t> values;
};

/// Reads bytes in the format IDX, of which each number of the header has four bytes, the highest first: a magic number of
/// two zeros, the type (8: bytes) and the number of dimensions; the dimensions; and then the values. Throws BadFile.
Idx read_idx(const std::string& path, std::size_t dimensions);

/// Image i is pixels [i * kPixels, (i + 1) * kPixels), row by row, 255 for ink; labels[i] says which digit it is.
struct Digits {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
  std::uint64_t count() const { return labels.size(); }
};

/// Reads KIND-images-idx3-ubyte and KIND-labels-idx1-ubyte in the folder; kind: "train" or "t10k". Throws BadFile.
Digits read_digits(const std::string& folder, const std::string& kind);

/// Draws digits out of strokes, turned, sheared, moved and with noise. Image i depends on seed and i alone, so a longer
/// set begins with a shorter one.
Digits draw_digits(std::uint64_t count, std::uint64_t seed);

}  // namespace mnist
