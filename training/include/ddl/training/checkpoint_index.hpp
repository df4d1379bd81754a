// The index of a checkpoint: which tensors it has, and in which part each piece of them lies. Part of checkpoint.hpp.
#ifndef DDL_TRAINING_CHECKPOINT_INDEX_HPP
#define DDL_TRAINING_CHECKPOINT_INDEX_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ddl/training/safetensors_header.hpp"

namespace ddl::training {

/// A tensor of a checkpoint, as a whole.
struct CheckpointTensor {
  /// Its elements [begin, end), row by row, which are the tensor key of that part.
  struct Piece {
    std::size_t part = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  ddl_dtype dtype = DDL_FLOAT32;
  std::vector<std::uint64_t> shape;
  std::vector<Piece> pieces{};  ///< in order, without holes and overlaps
};

namespace detail {

/// The name that a piece has in the file of its part: that of the tensor if it is all of it, else "NAME[BEGIN:END]".
inline std::string piece_key(const std::string& name, std::uint64_t begin, std::uint64_t end,
                             std::uint64_t count) {
  if (begin == 0 && end == count) return name;
  return name + "[" + std::to_string(begin) + ":" + std::to_string(end) + "]";
}

/// "000007-5f0c1e9a" for generation 7. The second half is drawn: a rank that was left over by a job that has ended, and
/// writes its part late, writes no file of another checkpoint.
inline std::string checkpoint_id(std::uint64_t generation, std::uint32_t drawn) {
  char id[48];
  std::snprintf(id, sizeof id, "%06llu-%08lx", static_cast<unsigned long long>(generation),
                static_cast<unsigned long>(drawn));
  return id;
}
/// "part-000007-5f0c1e9a-00001-of-00002.safetensors": of the second rank of two.
inline std::string part_file(const std::string& id, int rank, int size) {
  char of[48];
  std::snprintf(of, sizeof of, "-%05d-of-%05d.safetensors", rank, size);
  return "part-" + id + of;
}
/// Whether part_file() makes such names.
inline bool is_part_file(const std::string& name) {
  std::size_t at = 0;
  const auto takes = [&](const std::string& text) {
    if (name.compare(at, text.size(), text) != 0) return false;
    at += text.size();
    return true;
  };
  const auto takes_some_of = [&](const char* digits) {
    const std::size_t from = at;
    at = std::min(name.find_first_not_of(digits, at), name.size());
    return at > from;
  };
  const char* const decimal = "0123456789";
  return takes("part-") && takes_some_of(decimal) && takes("-") && takes_some_of("0123456789abcdef") &&
         takes("-") && takes_some_of(decimal) && takes("-of-") && takes_some_of(decimal) &&
         takes(".safetensors") && at == name.size();
}

struct CheckpointIndex {
  struct Part {
    std::string file;  ///< in the folder of the index
    std::uint64_t bytes = 0;
  };
  static constexpr const char* kFile = "index.json";
  static constexpr const char* kFormat = "ddl-checkpoint-1";

  std::uint64_t generation = 0;  ///< counts the checkpoints that the folder has had
  Metadata metadata{};
  std::vector<Part> parts{};
  std::map<std::string, CheckpointTensor> tensors{};
};

/// Puts the pieces of a tensor in order, and requires that they are all of it.
inline void check_pieces(const std::string& where, const std::string& name, CheckpointTensor& tensor) {
  const auto of_tensor = [&](const std::string& what) { return "tensor " + shown(name) + ": " + what; };
  const auto range = [](std::uint64_t begin, std::uint64_t end) {
    return "elements [" + std::to_string(begin) + ", " + std::to_string(end) + ")";
  };
  std::uint64_t count = 0;
  if (!count_elements(tensor.shape, dtype_row(tensor.dtype)->bytes, count))
    fail_in(where, of_tensor("it has more bytes than 64 bits can count"));
  using Piece = CheckpointTensor::Piece;
  std::sort(tensor.pieces.begin(), tensor.pieces.end(), [](const Piece& a, const Piece& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t next = 0;
  const Piece* before = nullptr;
  for (const Piece& piece : tensor.pieces) {
    if (piece.begin >= piece.end || piece.end > count)
      fail_in(where, of_tensor(range(piece.begin, piece.end) + " are no piece of " + std::to_string(count)));
    if (piece.begin < next)
      fail_in(where, of_tensor(range(piece.begin, std::min(next, piece.end)) + " are in part " +
                               std::to_string(before->part) + " and in part " + std::to_string(piece.part)));
    if (piece.begin > next) fail_in(where, of_tensor(range(next, piece.begin) + " are in no part"));
    next = piece.end;
    before = &piece;
  }
  if (next < count) fail_in(where, of_tensor(range(next, count) + " are in no part"));
}

inline std::string index_text(const CheckpointIndex& index) {
  nlohmann::json all = {{"format", CheckpointIndex::kFormat},
                        {"generation", index.generation},
                        {"metadata", nlohmann::json::object()},
                        {"parts", nlohmann::json::array()},
                        {"tensors", nlohmann::json::object()}};
  for (const auto& one : index.metadata) all["metadata"][one.first] = one.second;
  for (const CheckpointIndex::Part& part : index.parts)
    all["parts"].push_back({{"file", part.file}, {"bytes", part.bytes}});
  for (const auto& one : index.tensors) {
    nlohmann::json pieces = nlohmann::json::array();
    for (const CheckpointTensor::Piece& piece : one.second.pieces)
      pieces.push_back({{"part", piece.part}, {"begin", piece.begin}, {"end", piece.end}});
    all["tensors"][one.first] = {
        {"dtype", dtype_name(one.second.dtype)}, {"shape", one.second.shape}, {"pieces", std::move(pieces)}};
  }
  try {
    return all.dump(1) + "\n";
  } catch (const nlohmann::json::exception&) {
    throw Error(DDL_ERROR_INVALID_ARGUMENT,
                "a name or text of the metadata, or the name of a tensor, is not UTF-8");
  }
}

/// Takes the values of an index apart; every error names the file and the place.
class IndexParser {
 public:
  explicit IndexParser(std::string where) : where_(std::move(where)) {}

  CheckpointIndex parse(const std::string& text) const {
    const nlohmann::json all = nlohmann::json::parse(text, nullptr, false);
    if (all.is_discarded()) fail_in(where_, "it is not valid JSON; remove it to begin anew");
    CheckpointIndex index;
    const std::string format = this->text(all, "format", "the index");
    if (format != CheckpointIndex::kFormat)
      fail_in(where_, "it has the format " + shown(format) + ", and this program reads " +
                          shown(CheckpointIndex::kFormat));
    index.generation = number(all, "generation", "the index");
    const nlohmann::json& metadata = object(all, "metadata", "the index");
    for (const auto& one : metadata.items())
      index.metadata[one.key()] = this->text(metadata, one.key(), "metadata");
    for (const nlohmann::json& one : list(all, "parts", "the index")) {
      CheckpointIndex::Part part{this->text(one, "file", "a part"), number(one, "bytes", "a part")};
      // Never a file of another folder.
      if (!is_part_file(part.file)) fail_in(where_, "the name of a part is " + shown(part.file));
      index.parts.push_back(std::move(part));
    }
    const nlohmann::json& tensors = object(all, "tensors", "the index");
    for (const auto& one : tensors.items())
      index.tensors.emplace(one.key(), tensor(one.key(), one.value(), index.parts.size()));
    return index;
  }

 private:
  CheckpointTensor tensor(const std::string& name, const nlohmann::json& value, std::size_t parts) const {
    const std::string place = "tensor " + shown(name);
    CheckpointTensor tensor;
    const std::string dtype = text(value, "dtype", place);
    const DtypeRow* const row = dtype_row(dtype);
    if (row == nullptr) fail_in(where_, place + " has the dtype " + shown(dtype));
    tensor.dtype = row->dtype;
    for (const nlohmann::json& dimension : list(value, "shape", place)) {
      if (!dimension.is_number_unsigned()) fail_in(where_, place + " has a shape that is not of numbers");
      tensor.shape.push_back(dimension.get<std::uint64_t>());
    }
    for (const nlohmann::json& piece : list(value, "pieces", place)) {
      const std::uint64_t part = number(piece, "part", place);
      if (part >= parts)
        fail_in(where_, place + " has a piece in part " + std::to_string(part) + ", which is not there");
      tensor.pieces.push_back(
          {static_cast<std::size_t>(part), number(piece, "begin", place), number(piece, "end", place)});
    }
    check_pieces(where_, name, tensor);
    return tensor;
  }

  template <class Is>
  const nlohmann::json& field(const nlohmann::json& of, const std::string& name, const std::string& place,
                              Is is, const char* kind) const {
    const auto found = of.is_object() ? of.find(name) : of.end();
    if (found == of.end() || !is(*found)) fail_in(where_, place + " has no " + kind + " " + shown(name));
    return *found;
  }
  std::string text(const nlohmann::json& of, const std::string& name, const std::string& place) const {
    return field(
               of, name, place, [](const nlohmann::json& one) { return one.is_string(); }, "text")
        .template get<std::string>();
  }
  std::uint64_t number(const nlohmann::json& of, const std::string& name, const std::string& place) const {
    return field(
               of, name, place, [](const nlohmann::json& one) { return one.is_number_unsigned(); }, "number")
        .template get<std::uint64_t>();
  }
  const nlohmann::json& list(const nlohmann::json& of, const std::string& name,
                             const std::string& place) const {
    return field(
        of, name, place, [](const nlohmann::json& one) { return one.is_array(); }, "list");
  }
  const nlohmann::json& object(const nlohmann::json& of, const std::string& name,
                               const std::string& place) const {
    return field(
        of, name, place, [](const nlohmann::json& one) { return one.is_object(); }, "object");
  }

  std::string where_;
};

}  // namespace detail

}  // namespace ddl::training

#endif  // DDL_TRAINING_CHECKPOINT_INDEX_HPP
