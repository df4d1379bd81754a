#include <filesystem>
#include <fstream>
#include <system_error>

#include "digits.h"

namespace mnist {
namespace {

std::vector<std::uint8_t> bytes_of(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) throw BadFile("there is no file " + path);
  std::ifstream file(path, std::ios::binary);
  std::vector<std::uint8_t> bytes(std::filesystem::file_size(path, failed));
  if (failed || !file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())))
    throw BadFile(path + " cannot be read");
  return bytes;
}

std::uint32_t big_endian(const std::uint8_t* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | bytes[i];
  return value;
}

std::string by(const std::vector<std::uint32_t>& shape) {
  std::string text;
  for (const std::uint32_t one : shape) text += (text.empty() ? "" : " x ") + std::to_string(one);
  return text;
}

std::string hexadecimal(std::uint32_t value) {
  char text[11];
  std::snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

}  // namespace

Idx read_idx(const std::string& path, std::size_t dimensions) {
  const std::vector<std::uint8_t> bytes = bytes_of(path);
  const std::size_t header = 4 + 4 * dimensions;
  if (bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b)
    throw BadFile(path + " is packed by gzip: unpack it with gunzip");
  if (bytes.size() < header)
    throw BadFile(path + " is no IDX file: it has " + std::to_string(bytes.size()) +
                  " bytes, and its header alone would have " + std::to_string(header));
  const std::uint32_t magic = big_endian(bytes.data());
  const auto expected = 0x0800U + static_cast<std::uint32_t>(dimensions);
  if (magic != expected)
    throw BadFile(path + " is no IDX file of " + std::to_string(dimensions) + " dimensions: it begins with " +
                  hexadecimal(magic) + ", not " + hexadecimal(expected));
  Idx idx;
  for (std::size_t i = 1; i <= dimensions; ++i) idx.shape.push_back(big_endian(bytes.data() + 4 * i));
  // By division, since a product of the numbers in a broken header may have more than 64 bits.
  const std::uint64_t values = bytes.size() - header;
  std::uint64_t left = values;
  bool is_right = true;
  for (const std::uint32_t one : idx.shape) {
    is_right = is_right && one != 0 && left % one == 0;
    if (is_right) left /= one;
  }
  if (!is_right || left != 1)
    throw BadFile(path + " has " + std::to_string(values) + " values behind its header, which says " +
                  by(idx.shape) + ": fetch it again");
  idx.values.assign(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end());
  return idx;
}

Digits read_digits(const std::string& folder, const std::string& kind) {
  std::error_code failed;
  if (!std::filesystem::is_directory(folder, failed)) throw BadFile("there is no directory " + folder);
  const std::string images_path = (std::filesystem::path(folder) / (kind + "-images-idx3-ubyte")).string();
  const std::string labels_path = (std::filesystem::path(folder) / (kind + "-labels-idx1-ubyte")).string();
  Idx images = read_idx(images_path, 3);
  Idx labels = read_idx(labels_path, 1);
  if (images.shape[1] != kSide || images.shape[2] != kSide)
    throw BadFile(images_path + " has images of " + std::to_string(images.shape[1]) + " x " +
                  std::to_string(images.shape[2]) + "; those of MNIST are 28 x 28");
  if (images.shape[0] != labels.shape[0])
    throw BadFile(images_path + " has " + std::to_string(images.shape[0]) + " images, and " + labels_path +
                  " has " + std::to_string(labels.shape[0]) + " labels");
  for (const std::uint8_t label : labels.values) {
    if (label >= kClasses) throw BadFile(labels_path + " has the label " + std::to_string(label));
  }
  return {std::move(images.values), std::move(labels.values)};
}

}  // namespace mnist
