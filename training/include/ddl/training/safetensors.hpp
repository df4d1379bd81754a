// Tensors in a file of the format safetensors, which Python's safetensors and others read and write, too.
#ifndef DDL_TRAINING_SAFETENSORS_HPP
#define DDL_TRAINING_SAFETENSORS_HPP

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ddl/call.hpp"
#include "ddl/training/replaced_file.hpp"
#include "ddl/training/safetensors_header.hpp"
#include "ddl/training/tensors.hpp"

namespace ddl::training {

/// Writes the file anew. Whenever the process is killed, the old file or the whole new one is there; what killed writers
/// have left is removed. Ranks that write the same file at a time are a mistake: one of the files stays. The data begin at
/// a multiple of 8 bytes, and each tensor at a multiple of its elements' size. Throws ddl::Error: DDL_ERROR_SYSTEM with
/// the file's name if it cannot be written, DDL_ERROR_INVALID_ARGUMENT for tensors that the format cannot have, such as
/// two of a name.
inline void write_safetensors(const std::string& path, const std::vector<TensorView>& tensors,
                              const Metadata& metadata = {});

namespace detail {

/// The bytes before the data, with the length, and the order in which the tensors' data follow.
struct SafetensorsLayout {
  std::string head;
  std::vector<const TensorView*> order;
  std::vector<std::uint64_t> bytes;  ///< of each in that order
};

inline SafetensorsLayout layout_of(const std::string& path, const std::vector<TensorView>& tensors,
                                   const Metadata& metadata) {
  SafetensorsLayout layout;
  for (const TensorView& tensor : tensors) {
    const auto of_tensor = [&](const std::string& what) {
      return "tensor " + shown(tensor.name) + " " + what;
    };
    if (dtype_row(tensor.dtype) == nullptr)
      fail_in(path, of_tensor("has " + dtype_name(tensor.dtype) + ", which safetensors does not have"));
    if (tensor.name == "__metadata__") fail_in(path, "__metadata__ cannot be the name of a tensor");
    layout.order.push_back(&tensor);
  }
  // The largest elements first: so all are aligned, without holes.
  std::sort(layout.order.begin(), layout.order.end(), [](const TensorView* a, const TensorView* b) {
    const std::uint64_t bytes_of_a = dtype_row(a->dtype)->bytes;
    const std::uint64_t bytes_of_b = dtype_row(b->dtype)->bytes;
    return bytes_of_a != bytes_of_b ? bytes_of_a > bytes_of_b : a->name < b->name;
  });

  std::string text;
  const auto begin_entry = [&](const std::string& name) {
    text += (text.empty() ? "{" : ",") + as_json(name) + ":";
  };
  if (!metadata.empty()) {
    begin_entry("__metadata__");
    char before = '{';
    for (const auto& one : metadata) {
      text += before + as_json(one.first) + ":" + as_json(one.second);
      before = ',';
    }
    text += '}';
  }
  std::uint64_t next = 0;
  std::set<std::string> names;
  for (const TensorView* const tensor : layout.order) {
    const std::string of_tensor = "tensor " + shown(tensor->name);
    if (!names.insert(tensor->name).second) fail_in(path, of_tensor + " is given twice");
    const std::uint64_t element_bytes = dtype_row(tensor->dtype)->bytes;
    std::uint64_t count = 0;
    if (!count_elements(tensor->shape, element_bytes, count) ||
        next > std::numeric_limits<std::uint64_t>::max() - count * element_bytes)
      fail_in(path, of_tensor + " has more bytes than 64 bits can count");
    if (count > 0 && tensor->data == nullptr) fail_in(path, of_tensor + " has no data");
    layout.bytes.push_back(count * element_bytes);
    begin_entry(tensor->name);
    text += "{\"dtype\":\"" + dtype_name(tensor->dtype) +
            "\",\"shape\":" + nlohmann::json(tensor->shape).dump() + ",\"data_offsets\":[" +
            std::to_string(next) + ",";
    next += count * element_bytes;
    text += std::to_string(next) + "]}";
  }
  text += text.empty() ? "{}" : "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaxHeaderBytes)
    fail_in(path, "the names and texts make a header of more than 100000000 bytes");
  const std::uint64_t length = text.size();
  layout.head.assign(reinterpret_cast<const char*>(&length), sizeof length);
  layout.head += text;
  return layout;
}

/// The bytes of a file, in memory as they are used. The file must not be written to while it is open; that it is replaced
/// or removed does no harm.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const OpenFile file(uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
    if (!file) fail_of_file(path, "cannot be opened", errno);
    struct stat status = {};
    if (::fstat(file.get(), &status) != 0) fail_of_file(path, "cannot be opened", errno);
    if (!S_ISREG(status.st_mode)) fail_in(path, "it is not a file");
    size_ = static_cast<std::size_t>(status.st_size);
    if (size_ == 0) return;
    void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (memory == MAP_FAILED) fail_of_file(path, "cannot be mapped", errno);
    data_ = static_cast<const char*>(memory);
  }
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
  }
  const char* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Elements [begin, end) of count ones, or an error.
inline void check_range(const std::string& where, const std::string& name, std::uint64_t begin,
                        std::uint64_t end, std::uint64_t count) {
  if (begin <= end && end <= count) return;
  fail_in(where, "tensor " + shown(name) + " has " + std::to_string(count) + " elements, not [" +
                     std::to_string(begin) + ", " + std::to_string(end) + ")");
}
inline void check_dtype(const std::string& where, const std::string& name, ddl_dtype dtype, ddl_dtype asked) {
  if (dtype != asked)
    fail_in(where, "tensor " + shown(name) + " is " + dtype_name(dtype) + ", not " + dtype_name(asked));
}

}  // namespace detail

/// A file that is read where it lies: opening it reads its header only, and checks all of it. Errors are ddl::Error and
/// name the file. Any number of threads may read.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::string path) : path_(std::move(path)), file_(path_) {
    std::uint64_t length = 0;
    if (file_.size() < sizeof length)
      detail::fail_in(path_, "the file has " + std::to_string(file_.size()) +
                                 " bytes; a safetensors file begins with the 8 bytes of a length");
    std::memcpy(&length, file_.data(), sizeof length);
    if (length > detail::kMaxHeaderBytes)
      detail::fail_in(path_,
                      "the header would have " + std::to_string(length) +
                          " bytes, more than the 100000000 that are allowed; this is no safetensors file");
    const std::uint64_t behind = file_.size() - sizeof length;
    if (length > behind)
      detail::fail_in(path_, "the file has lost its end: the header has " + std::to_string(length) +
                                 " bytes, and " + std::to_string(behind) + " are there");
    header_ = detail::parse_header(file_.data() + sizeof length, length, behind - length, path_);
    data_ = file_.data() + sizeof length + length;
    for (std::size_t i = 0; i < header_.tensors.size(); ++i) by_name_.emplace(header_.tensors[i].name, i);
  }

  const std::string& path() const { return path_; }
  /// In bytes.
  std::uint64_t size() const { return file_.size(); }
  /// In the order of their data.
  const std::vector<TensorInfo>& tensors() const { return header_.tensors; }
  const Metadata& metadata() const { return header_.metadata; }
  bool has(const std::string& name) const { return by_name_.count(name) > 0; }
  const TensorInfo& tensor(const std::string& name) const {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) detail::fail_in(path_, "there is no tensor " + detail::shown(name));
    return header_.tensors[found->second];
  }
  /// The number of its elements.
  std::uint64_t count(const std::string& name) const { return detail::elements_of(tensor(name)); }

  /// Where the tensor lies, as long as this object lives: row by row. Files of other programs may have it at an address
  /// that is no multiple of an element's size.
  const void* data(const std::string& name) const { return data_ + tensor(name).begin; }

  /// Copies elements [begin, end), counted row by row, whatever its shape: so a rank reads its shard and no more.
  void read(const std::string& name, std::uint64_t begin, std::uint64_t end, ddl_dtype dtype,
            void* out) const {
    const TensorInfo& info = tensor(name);
    detail::check_dtype(path_, name, info.dtype, dtype);
    detail::check_range(path_, name, begin, end, detail::elements_of(info));
    const std::uint64_t bytes = detail::dtype_row(dtype)->bytes;
    if (begin < end) std::memcpy(out, data_ + info.begin + begin * bytes, (end - begin) * bytes);
  }
  template <class T>
  void read(const std::string& name, std::uint64_t begin, std::uint64_t end, T* out) const {
    read(name, begin, end, ddl::detail::dtype_of<T>(), out);
  }
  template <class T>
  std::vector<T> values(const std::string& name, std::uint64_t begin, std::uint64_t end) const {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no memory of its elements; use read()");
    const TensorInfo& info = tensor(name);
    detail::check_range(path_, name, begin, end, detail::elements_of(info));
    std::vector<T> all(end - begin);
    read(name, begin, end, all.data());
    return all;
  }
  template <class T>
  std::vector<T> values(const std::string& name) const {
    return values<T>(name, 0, count(name));
  }

 private:
  std::string path_;
  detail::MappedFile file_;
  detail::SafetensorsHeader header_;
  const char* data_ = nullptr;
  std::map<std::string, std::size_t> by_name_;
};

namespace detail {

/// write_safetensors(); returns the bytes of the file.
inline std::uint64_t write_tensors(const std::string& path, const std::vector<TensorView>& tensors,
                                   const Metadata& metadata) {
  const SafetensorsLayout layout = layout_of(path, tensors, metadata);
  ReplacedFile file(path);
  file.write(layout.head.data(), layout.head.size());
  std::uint64_t bytes = layout.head.size();
  for (std::size_t i = 0; i < layout.order.size(); ++i) {
    file.write(layout.order[i]->data, layout.bytes[i]);
    bytes += layout.bytes[i];
  }
  file.commit();
  return bytes;
}

}  // namespace detail

inline void write_safetensors(const std::string& path, const std::vector<TensorView>& tensors,
                              const Metadata& metadata) {
  detail::write_tensors(path, tensors, metadata);
}

}  // namespace ddl::training

#endif  // DDL_TRAINING_SAFETENSORS_HPP
