// Checkpoints of a job: each rank writes what it has into a part of its own, and any number of ranks reads them.
//
// The folder of a checkpoint:
//
//   index.json                                       which tensors there are, and in which part each piece lies
//   part-000007-5f0c1e9a-00000-of-00002.safetensors  what rank 0 of 2 has written, for the seventh checkpoint there
//   part-000007-5f0c1e9a-00001-of-00002.safetensors
//
// The index is replaced last, as a whole. Until then the earlier checkpoint is complete, and from then on the new one.
#ifndef DDL_TRAINING_CHECKPOINT_HPP
#define DDL_TRAINING_CHECKPOINT_HPP

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "ddl/ddl.hpp"
#include "ddl/training/checkpoint_index.hpp"
#include "ddl/training/safetensors.hpp"
#include "ddl/training/tensors.hpp"

namespace ddl::training {

/// Writes a checkpoint into the folder, which is made if it is not there and holds one checkpoint at a time: the earlier
/// one is removed when the new one is complete. Whenever ranks or hosts are lost, one of both is there. shards: what only
/// this rank has. replicated: what all ranks have alike; rank 0 writes it. metadata: rank 0's count; the step, the state
/// of the sampler. Collective. Throws the same ddl::Error on all ranks: DDL_ERROR_SYSTEM if a rank cannot write,
/// DDL_ERROR_INVALID_ARGUMENT if pieces of a tensor are missing or are there twice, or if another job writes there.
inline void save_checkpoint(Context& context, const std::string& folder, const std::vector<Shard>& shards,
                            const std::vector<TensorView>& replicated = {}, const Metadata& metadata = {});

/// A checkpoint that is read, by any number of ranks, each of which reads the elements that it needs and opens only the
/// parts where these lie. Not collective. Errors are ddl::Error and name the file; a part that is missing, or not as long
/// as when it was written, is noticed when something is read from it, or by check(). A job that writes another checkpoint
/// into the folder meanwhile takes the parts away. One thread.
class Checkpoint {
 public:
  explicit Checkpoint(std::string folder) : folder_(std::move(folder)) {
    const std::string file = index_file(folder_);
    std::error_code failed;
    if (!std::filesystem::exists(file, failed))
      throw Error(DDL_ERROR_SYSTEM, file + " is not there: the folder has no complete checkpoint");
    const detail::MappedFile index(file);
    if (index.size() > detail::kMaxHeaderBytes) detail::fail_in(file, "it is too long for an index");
    index_ = detail::IndexParser(file).parse(std::string(index.data(), index.size()));
    parts_.resize(index_.parts.size());
  }

  /// Whether the folder has a complete checkpoint.
  static bool exists(const std::string& folder) {
    std::error_code ignored;
    return std::filesystem::exists(index_file(folder), ignored);
  }

  /// How many checkpoints the folder has had, this one included.
  std::uint64_t generation() const { return index_.generation; }
  const Metadata& metadata() const { return index_.metadata; }
  const std::map<std::string, CheckpointTensor>& tensors() const { return index_.tensors; }
  bool has(const std::string& name) const { return index_.tensors.count(name) > 0; }
  const CheckpointTensor& tensor(const std::string& name) const {
    const auto found = index_.tensors.find(name);
    if (found == index_.tensors.end())
      detail::fail_in(index_file(folder_), "there is no tensor " + detail::shown(name));
    return found->second;
  }
  /// The number of its elements.
  std::uint64_t count(const std::string& name) const {
    const CheckpointTensor& found = tensor(name);
    return found.pieces.empty() ? 0 : found.pieces.back().end;
  }

  /// Opens every part. For rank 0, before others begin to read.
  void check() {
    for (std::size_t i = 0; i < index_.parts.size(); ++i) part(i);
    for (const auto& one : index_.tensors)
      for (const CheckpointTensor::Piece& piece : one.second.pieces)
        check_piece(one.first, one.second, piece);
  }

  /// Copies elements [begin, end), counted row by row, from the parts that have them.
  void read(const std::string& name, std::uint64_t begin, std::uint64_t end, ddl_dtype dtype, void* out) {
    const CheckpointTensor& found = tensor(name);
    const std::string file = index_file(folder_);
    detail::check_dtype(file, name, found.dtype, dtype);
    detail::check_range(file, name, begin, end, count(name));
    using Piece = CheckpointTensor::Piece;
    const auto first = std::upper_bound(found.pieces.begin(), found.pieces.end(), begin,
                                        [](std::uint64_t at, const Piece& piece) { return at < piece.end; });
    const std::uint64_t bytes = detail::dtype_row(dtype)->bytes;
    for (auto piece = first; piece != found.pieces.end() && piece->begin < end; ++piece) {
      const std::uint64_t from = std::max(begin, piece->begin), to = std::min(end, piece->end);
      check_piece(name, found, *piece)
          .read(key_of(name, *piece), from - piece->begin, to - piece->begin, dtype,
                static_cast<char*>(out) + (from - begin) * bytes);
    }
  }
  template <class T>
  void read(const std::string& name, std::uint64_t begin, std::uint64_t end, T* out) {
    read(name, begin, end, ddl::detail::dtype_of<T>(), out);
  }
  template <class T>
  std::vector<T> values(const std::string& name, std::uint64_t begin, std::uint64_t end) {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no memory of its elements; use read()");
    detail::check_range(index_file(folder_), name, begin, end, count(name));
    std::vector<T> all(end - begin);
    read(name, begin, end, all.data());
    return all;
  }
  template <class T>
  std::vector<T> values(const std::string& name) {
    return values<T>(name, 0, count(name));
  }

 private:
  static std::string index_file(const std::string& folder) {
    return (std::filesystem::path(folder) / detail::CheckpointIndex::kFile).string();
  }
  std::string key_of(const std::string& name, const CheckpointTensor::Piece& piece) const {
    return detail::piece_key(name, piece.begin, piece.end, count(name));
  }
  const SafetensorsFile& part(std::size_t number) {
    if (parts_[number] != nullptr) return *parts_[number];
    const detail::CheckpointIndex::Part& expected = index_.parts[number];
    const std::string path = (std::filesystem::path(folder_) / expected.file).string();
    std::error_code failed;
    if (!std::filesystem::exists(path, failed))
      throw Error(DDL_ERROR_SYSTEM, path + " is not there: a part of the checkpoint is missing");
    const std::uint64_t bytes = std::filesystem::file_size(path, failed);
    if (!failed && bytes != expected.bytes)
      detail::fail_in(path, "the part has " + std::to_string(bytes) + " bytes, and " +
                                std::to_string(expected.bytes) + " were written");
    parts_[number] = std::make_unique<SafetensorsFile>(path);
    return *parts_[number];
  }
  /// The part of a piece, which has it as the index says.
  const SafetensorsFile& check_piece(const std::string& name, const CheckpointTensor& whole,
                                     const CheckpointTensor::Piece& piece) {
    const SafetensorsFile& file = part(piece.part);
    const std::string key = key_of(name, piece);
    detail::check_dtype(file.path(), key, file.tensor(key).dtype, whole.dtype);
    detail::check_range(file.path(), key, 0, piece.end - piece.begin, file.count(key));
    return file;
  }

  std::string folder_;
  detail::CheckpointIndex index_;
  std::vector<std::unique_ptr<SafetensorsFile>> parts_;  ///< those that were opened
};

/// The steps of save_checkpoint(), for programs whose ranks exchange texts by other means than libddl: rank 0 makes a
/// CheckpointWriter; when it has, every rank calls write_part() with its id(); when all have, rank 0 calls
/// finish() with what these returned, by rank. Errors are ddl::Error. One job at a time: the folder is locked, where the
/// file system has locks.
class CheckpointWriter {
 public:
  /// Makes the folder, and removes what jobs have left there that were killed.
  explicit CheckpointWriter(std::string folder) : folder_(std::move(folder)) {
    std::error_code failed;
    std::filesystem::create_directories(folder_, failed);
    lock_ = detail::OpenFile(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock_) detail::fail_of_file(folder_, "is not a folder that can be made or opened", errno);
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      detail::fail_in(folder_,
                      "another process writes a checkpoint there now; give each job a folder of its own");
    std::set<std::string> complete;
    if (Checkpoint::exists(folder_)) {
      const std::string file = (std::filesystem::path(folder_) / detail::CheckpointIndex::kFile).string();
      const detail::MappedFile text(file);
      const auto index = detail::IndexParser(file).parse(std::string(text.data(), text.size()));
      generation_ = index.generation;
      for (const detail::CheckpointIndex::Part& part : index.parts) complete.insert(part.file);
    }
    ++generation_;
    id_ = detail::checkpoint_id(generation_, std::random_device{}());
    remove_other_parts(complete);
    detail::ReplacedFile::remove_leftovers(std::filesystem::path(folder_) / detail::CheckpointIndex::kFile);
    detail::sync_folder(detail::folder_of(std::filesystem::path(folder_)));
  }

  /// Of the checkpoint that is written.
  const std::string& id() const { return id_; }

  /// parts: what write_part() has returned, by rank. When this returns, the checkpoint is complete and the earlier one is
  /// removed.
  void finish(const std::vector<std::string>& parts, const Metadata& metadata) {
    const std::string path = (std::filesystem::path(folder_) / detail::CheckpointIndex::kFile).string();
    detail::CheckpointIndex index;
    index.generation = generation_;
    index.metadata = metadata;
    std::set<std::string> complete;
    for (const std::string& description : parts) {
      add_part(path, index, nlohmann::json::parse(description));
      complete.insert(index.parts.back().file);
    }
    for (auto& one : index.tensors) detail::check_pieces(path, one.first, one.second);
    const std::string text = detail::index_text(index);
    detail::ReplacedFile file(path);
    file.write(text.data(), text.size());
    file.commit();
    remove_other_parts(complete);
  }

 private:
  static void add_part(const std::string& path, detail::CheckpointIndex& index,
                       const nlohmann::json& described) {
    const std::size_t number = index.parts.size();
    index.parts.push_back({described.at("file"), described.at("bytes")});
    for (const nlohmann::json& one : described.at("shards")) {
      const std::string name = one.at("name");
      const CheckpointTensor whole{one.at("dtype").get<ddl_dtype>(), one.at("shape")};
      CheckpointTensor& tensor = index.tensors.emplace(name, whole).first->second;
      if (tensor.dtype != whole.dtype || tensor.shape != whole.shape)
        detail::fail_in(path, "tensor " + detail::shown(name) + " has another type or shape on rank " +
                                  std::to_string(number) + " than on the ranks before it");
      const std::uint64_t begin = one.at("begin"), end = one.at("end");
      if (begin < end) tensor.pieces.push_back({number, begin, end});
    }
  }

  /// Removes the parts that are of no complete checkpoint, and unfinished files of parts.
  void remove_other_parts(const std::set<std::string>& complete) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
      const std::string name = entry.path().filename().string();
      const std::string of = detail::ReplacedFile::name_of_leftover(name);
      if (detail::is_part_file(of.empty() ? name : of) && complete.count(name) == 0)
        std::filesystem::remove(entry.path(), ignored);
    }
  }

  std::string folder_;
  detail::OpenFile lock_;
  std::uint64_t generation_ = 0;
  std::string id_;
};

/// Writes this rank's part. The text is for CheckpointWriter::finish().
inline std::string write_part(const std::string& folder, const std::string& id, int rank, int size,
                              const std::vector<Shard>& shards) {
  // On another host rank 0's new folder may not be known yet.
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const std::string name = detail::part_file(id, rank, size);
  const std::string path = (std::filesystem::path(folder) / name).string();
  std::vector<TensorView> tensors;
  nlohmann::json described = nlohmann::json::array();
  for (const Shard& one : shards) {
    const std::string of_tensor = "tensor " + detail::shown(one.name);
    const detail::DtypeRow* const row = detail::dtype_row(one.dtype);
    std::uint64_t count = 0;
    if (row == nullptr)
      detail::fail_in(
          path, of_tensor + " has " + detail::dtype_name(one.dtype) + ", which safetensors does not have");
    if (!detail::count_elements(one.shape, row->bytes, count))
      detail::fail_in(path, of_tensor + " has more bytes than 64 bits can count");
    detail::check_range(path, one.name, one.begin, one.end, count);
    detail::as_json(one.name);
    described.push_back({{"name", one.name},
                         {"dtype", one.dtype},
                         {"shape", one.shape},
                         {"begin", one.begin},
                         {"end", one.end}});
    if (one.begin == one.end) continue;
    const bool is_whole = one.end - one.begin == count;
    tensors.push_back({detail::piece_key(one.name, one.begin, one.end, count), one.dtype,
                       is_whole ? one.shape : std::vector<std::uint64_t>{one.end - one.begin}, one.data});
  }
  const std::uint64_t bytes = detail::write_tensors(path, tensors, {});
  return nlohmann::json{{"file", name}, {"bytes", bytes}, {"shards", std::move(described)}}.dump();
}

namespace detail {

/// The texts of all ranks, by rank. Collective.
inline std::vector<std::string> gather_texts(Context& context, const std::string& own) {
  const std::vector<std::uint64_t> length{own.size()};
  const std::vector<std::uint64_t> lengths = context.allgather(length);
  const std::vector<std::uint8_t> bytes(own.begin(), own.end());
  const std::vector<std::uint8_t> all = context.allgatherv(bytes, lengths);
  std::vector<std::string> texts;
  auto at = all.begin();
  for (const std::uint64_t one : lengths) {
    texts.emplace_back(at, at + static_cast<std::ptrdiff_t>(one));
    at += static_cast<std::ptrdiff_t>(one);
  }
  return texts;
}

/// Runs a step that makes no call of libddl. If it fails on a rank, all ranks throw the error of the first such rank.
/// Collective.
template <class Step>
void on_all_or_none(Context& context, Step step) {
  std::string problem;
  ddl_status status = DDL_OK;
  try {
    step();
  } catch (const Error& error) {
    problem = error.what();
    status = error.status();
  } catch (const std::exception& error) {
    problem = error.what();
    status = DDL_ERROR_SYSTEM;
  }
  const std::vector<std::int32_t> own{status};
  const std::vector<std::int32_t> all = context.allgather(own);
  const auto failed = std::find_if(all.begin(), all.end(), [](std::int32_t one) { return one != DDL_OK; });
  if (failed == all.end()) return;
  const auto rank = static_cast<std::size_t>(failed - all.begin());
  throw Error(*failed, "rank " + std::to_string(rank) + ": " + gather_texts(context, problem)[rank]);
}

}  // namespace detail

inline void save_checkpoint(Context& context, const std::string& folder, const std::vector<Shard>& shards,
                            const std::vector<TensorView>& replicated, const Metadata& metadata) {
  std::unique_ptr<CheckpointWriter> writer;
  detail::on_all_or_none(context, [&] {
    if (context.rank() == 0) writer = std::make_unique<CheckpointWriter>(folder);
  });
  const std::string id = detail::gather_texts(context, writer != nullptr ? writer->id() : "")[0];
  std::string described;
  detail::on_all_or_none(context, [&] {
    std::vector<Shard> own = shards;
    for (const TensorView& one : replicated) {
      const detail::DtypeRow* const row = detail::dtype_row(one.dtype);
      std::uint64_t count = 0;
      if (row != nullptr) detail::count_elements(one.shape, row->bytes, count);
      if (context.rank() == 0) own.push_back({one.name, one.dtype, one.shape, 0, count, one.data});
    }
    described = write_part(folder, id, context.rank(), context.size(), own);
  });
  const std::vector<std::string> parts = detail::gather_texts(context, described);
  detail::on_all_or_none(context, [&] {
    if (writer != nullptr) writer->finish(parts, metadata);
  });
}

}  // namespace ddl::training

#endif  // DDL_TRAINING_CHECKPOINT_HPP
