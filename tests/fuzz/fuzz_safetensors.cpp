// Arbitrary bytes as a file of tensors, and as the index of a checkpoint. What is accepted must be whole: every element can
// be read, and writing it gives the same again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "ddl/training/checkpoint_index.hpp"
#include "ddl/training/safetensors.hpp"

namespace {

using namespace ddl::training;  // NOLINT(google-build-using-namespace): this program is about nothing else

// Not that of fuzz/require.h, which is for the other ddl::Error.
void must(bool condition) {
  if (!condition) std::abort();
}

void must_be_refusal(const ddl::Error& error) {
  must(error.status() == DDL_ERROR_INVALID_ARGUMENT);
  const std::string message = error.what();
  must(!message.empty() && message.size() < 1500);
  for (const char c : message)
    must(static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7F);
}

void read_file(const std::uint8_t* data, std::size_t size) {
  const detail::OpenFile memory(::memfd_create("fuzz", MFD_CLOEXEC));
  must(static_cast<bool>(memory));
  must(::write(memory.get(), data, size) == static_cast<ssize_t>(size));
  try {
    const SafetensorsFile file("/proc/self/fd/" + std::to_string(memory.get()));
    std::vector<TensorView> tensors;
    for (const TensorInfo& tensor : file.tensors()) {
      const std::uint64_t count = file.count(tensor.name);
      std::vector<char> bytes(tensor.end - tensor.begin);
      file.read(tensor.name, 0, count, tensor.dtype, bytes.data());
      must(bytes.empty() || std::memcmp(bytes.data(), file.data(tensor.name), bytes.size()) == 0);
      tensors.push_back({tensor.name, tensor.dtype, tensor.shape, file.data(tensor.name)});
    }
    const detail::SafetensorsLayout layout = detail::layout_of("again", tensors, file.metadata());
    std::uint64_t data_bytes = 0;
    for (const std::uint64_t one : layout.bytes) data_bytes += one;
    const auto again =
        detail::parse_header(layout.head.data() + 8, layout.head.size() - 8, data_bytes, "again");
    must(again.tensors.size() == file.tensors().size() && again.metadata == file.metadata());
    for (const TensorInfo& tensor : again.tensors)
      must(tensor.shape == file.tensor(tensor.name).shape && tensor.dtype == file.tensor(tensor.name).dtype);
  } catch (const ddl::Error& error) {
    must_be_refusal(error);
  }
}

void read_index(const std::uint8_t* data, std::size_t size) {
  const detail::IndexParser parser("index.json");
  try {
    const auto index = parser.parse(std::string(reinterpret_cast<const char*>(data), size));
    for (const auto& one : index.tensors) {
      std::uint64_t next = 0;
      for (const CheckpointTensor::Piece& piece : one.second.pieces) {
        must(piece.part < index.parts.size() && piece.begin == next && piece.begin < piece.end);
        next = piece.end;
      }
    }
    for (const auto& part : index.parts) must(part.file.find('/') == std::string::npos);
    const std::string text = detail::index_text(index);
    must(detail::index_text(parser.parse(text)) == text);
  } catch (const ddl::Error& error) {
    must_be_refusal(error);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_file(data, size);
  read_index(data, size);
  return 0;
}
