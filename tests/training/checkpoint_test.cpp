#include "ddl/training/checkpoint.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/skip.h"
#include "support/temporary_directory.h"
#include "training/child.h"

namespace checkpoint_cases {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using ddl::test::TemporaryDirectory;
using ddl::training::Checkpoint;
using ddl::training::CheckpointWriter;
using ddl::training::Metadata;
using ddl::training::SafetensorsFile;
using ddl::training::Shard;
using ddl::training::shard;
using ddl::training::write_part;

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}
std::string content_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}
void put(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

/// What ranks do at a checkpoint, one after the other in this process: shards has those of each.
void save(const std::string& folder, const std::vector<std::vector<Shard>>& shards,
          const Metadata& metadata = {}) {
  CheckpointWriter writer(folder);
  std::vector<std::string> parts;
  const int size = static_cast<int>(shards.size());
  for (int rank = 0; rank < size; ++rank)
    parts.push_back(write_part(folder, writer.id(), rank, size, shards[static_cast<std::size_t>(rank)]));
  writer.finish(parts, metadata);
}

/// The state of a job as ZeRO deals it out: one buffer of all parameters, of which rank r of n has an even share; the
/// parameters do not begin and end where the shares do.
struct Job {
  std::vector<std::vector<std::uint64_t>> shapes = {{3, 5}, {7}, {2, 2, 2}, {}, {0, 4}, {11}};
  std::vector<float> master;
  std::vector<std::uint64_t> seen{1, 2, 3};  ///< replicated

  static std::uint64_t count(const std::vector<std::uint64_t>& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
  }
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const auto& shape : shapes) sum += count(shape);
    return sum;
  }
  std::pair<std::uint64_t, std::uint64_t> share(std::uint64_t rank, std::uint64_t size) const {
    const std::uint64_t each = (total() + size - 1) / size;
    return {std::min(total(), rank * each), std::min(total(), (rank + 1) * each)};
  }
  /// Calls function(name, shape, begin, end, place of element begin in the buffer) for each piece of a rank.
  template <class Function>
  void for_pieces(std::uint64_t rank, std::uint64_t size, Function function) const {
    const auto [first, last] = share(rank, size);
    std::uint64_t start = 0;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const std::uint64_t end = start + count(shapes[i]);
      const std::uint64_t from = std::max(first, start), to = std::min(last, end);
      if (from < to || count(shapes[i]) == 0)
        function("layer" + std::to_string(i), shapes[i], from < to ? from - start : 0,
                 from < to ? to - start : 0, from < to ? from : first);
      start = end;
    }
  }
  void save_at(const std::string& folder, int size) const {
    std::vector<std::vector<Shard>> shards(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      for_pieces(rank, size,
                 [&](const std::string& name, const auto& shape, auto begin, auto end, auto place) {
                   shards[rank].push_back(shard(name, master.data() + place, shape, begin, end));
                 });
    }
    shards[0].push_back(shard("seen", seen.data(), {3}, 0, 3));
    save(folder, shards, {{"ranks", std::to_string(size)}});
  }
  /// What all ranks read, each on its own.
  void load_at(const std::string& folder, int size) {
    master.assign(total(), -1);
    for (int rank = 0; rank < size; ++rank) {
      Checkpoint checkpoint(folder);
      for_pieces(rank, size,
                 [&](const std::string& name, const auto& shape, auto begin, auto end, auto place) {
                   CHECK(checkpoint.tensor(name).shape == shape);
                   checkpoint.read(name, begin, end, master.data() + place);
                 });
      seen = checkpoint.values<std::uint64_t>("seen");
    }
  }
};

TEST_CASE("a checkpoint of 2 ranks is read by 3, theirs by 1, and theirs by 4") {
  const TemporaryDirectory folder;
  Job job;
  job.master.resize(job.total());
  std::iota(job.master.begin(), job.master.end(), 0.25F);
  const std::vector<float> expected = job.master;
  const std::vector<int> sizes = {2, 3, 1, 4, 2, 5, 5, 1};
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    INFO(sizes[i] << " ranks, then " << sizes[i + 1]);
    job.save_at(folder.path(), sizes[i]);
    Checkpoint(folder.path()).check();
    CHECK(Checkpoint(folder.path()).generation() == i + 1);
    CHECK(Checkpoint(folder.path()).metadata() == Metadata{{"ranks", std::to_string(sizes[i])}});
    // The index and the parts, and nothing of earlier checkpoints.
    CHECK(files_in(folder.path()).size() == static_cast<std::size_t>(1 + sizes[i]));
    job.load_at(folder.path(), sizes[i + 1]);
    CHECK(job.master == expected);
    CHECK(job.seen == std::vector<std::uint64_t>{1, 2, 3});
  }
}

TEST_CASE("a rank opens only the parts where its elements lie") {
  const TemporaryDirectory folder;
  const std::vector<float> w{0, 1, 2, 3, 4, 5};
  save(folder.path(), {{shard("w", w.data(), {6}, 0, 2)},
                       {shard("w", w.data() + 2, {6}, 2, 4)},
                       {shard("w", w.data() + 4, {6}, 4, 6)}});
  for (const std::string& name : files_in(folder.path())) {
    if (name.find("-00001-of-") != std::string::npos) std::filesystem::remove(folder / name);
  }
  Checkpoint checkpoint(folder.path());
  CHECK(checkpoint.values<float>("w", 0, 2) == std::vector<float>{0, 1});
  CHECK(checkpoint.values<float>("w", 5, 6) == std::vector<float>{5});
  CHECK(checkpoint.values<float>("w", 2, 2).empty());
  CHECK_THROWS_WITH(
      checkpoint.values<float>("w", 1, 3),
      Contains("-00001-of-00003.safetensors is not there: a part of the checkpoint is missing"));
  CHECK_THROWS_WITH(checkpoint.check(), Contains("-00001-of-00003.safetensors is not there"));
}

TEST_CASE("parts are files that any reader of safetensors knows") {
  const TemporaryDirectory folder;
  const std::vector<float> w{0, 1, 2, 3, 4, 5};
  save(folder.path(), {{shard("w", w.data(), {2, 3}, 0, 4), shard("b", w.data(), {1, 2}, 0, 2)},
                       {shard("w", w.data() + 4, {2, 3}, 4, 6)}});
  for (const std::string& name : files_in(folder.path())) {
    if (name == "index.json") continue;
    const SafetensorsFile file(folder / name);
    if (name.find("-00000-of-") != std::string::npos) {
      CHECK(file.values<float>("w[0:4]") == std::vector<float>{0, 1, 2, 3});
      // What is not cut has its name and its shape.
      CHECK(file.tensor("b").shape == std::vector<std::uint64_t>{1, 2});
    } else {
      CHECK(file.values<float>("w[4:6]") == std::vector<float>{4, 5});
    }
  }
}

TEST_CASE("pieces that do not make a whole tensor are refused, and the earlier checkpoint stays") {
  const TemporaryDirectory folder;
  const std::vector<float> w{0, 1, 2, 3, 4, 5};
  save(folder.path(), {{shard("w", w.data(), {6}, 0, 6)}});
  const auto refused = [&](const std::vector<std::vector<Shard>>& shards, const char* message) {
    CHECK_THROWS_WITH(save(folder.path(), shards), Contains(message));
    CHECK(Checkpoint(folder.path()).values<float>("w") == w);
    CHECK(Checkpoint(folder.path()).generation() == 1);
  };
  const float* const d = w.data();
  refused({{shard("w", d, {6}, 0, 2)}, {shard("w", d, {6}, 3, 6)}},
          "tensor \"w\": elements [2, 3) are in no part");
  refused({{shard("w", d, {6}, 1, 6)}}, "elements [0, 1) are in no part");
  refused({{shard("w", d, {6}, 0, 2)}}, "elements [2, 6) are in no part");
  refused({{shard("w", d, {6}, 0, 4)}, {shard("w", d, {6}, 2, 6)}},
          "elements [2, 4) are in part 0 and in part 1");
  refused({{shard("w", d, {6}, 0, 6)}, {shard("w", d, {6}, 0, 6)}},
          "elements [0, 6) are in part 0 and in part 1");
  refused({{shard("w", d, {6}, 0, 3)}, {shard("w", d, {3, 2}, 3, 6)}},
          "tensor \"w\" has another type or shape on rank 1");
  const std::vector<double> doubles(6);
  refused({{shard("w", d, {6}, 0, 3)}, {shard("w", doubles.data(), {6}, 3, 6)}},
          "has another type or shape on rank 1");
  refused({{shard("w", d, {6}, 4, 8)}}, "tensor \"w\" has 6 elements, not [4, 8)");
  refused({{shard("w", d, {6}, 0, 6), shard("w", d, {6}, 0, 6)}}, "tensor \"w\" is given twice");
  refused({{shard("w", d, {6}, 0, 6), shard("w[0:2]", d, {1}, 0, 1), shard("w[0:2]", d, {1}, 0, 1)}},
          "given twice");
  refused({{shard("\xFF", d, {6}, 0, 6)}}, "is not UTF-8");
  refused({{{"w", DDL_FLOAT8_E5M2FNUZ, {6}, 0, 6, d}}}, "which safetensors does not have");
  refused({{shard("w", d, {~std::uint64_t{0}, 2}, 0, 6)}}, "more bytes than 64 bits can count");
  CHECK_THROWS_WITH(save(folder.path(), {{}}, {{"a", "\xFF"}}), Contains("is not UTF-8"));
  // What the refused ones have written is removed by the next one.
  save(folder.path(), {{shard("w", d, {6}, 0, 6)}});
  CHECK(files_in(folder.path()).size() == 2);
}

TEST_CASE("damaged checkpoints are errors that name the file") {
  const TemporaryDirectory folder;
  const std::vector<float> w(100, 3);
  const auto renew = [&] {
    save(folder.path(), {{shard("w", w.data(), {100}, 0, 50)}, {shard("w", w.data(), {100}, 50, 100)}});
    for (const std::string& name : files_in(folder.path()))
      if (name.find("-00001-of-") != std::string::npos) return folder / name;
    return std::string();
  };

  std::string part = renew();
  std::filesystem::resize_file(part, std::filesystem::file_size(part) - 1);
  CHECK_THROWS_WITH(Checkpoint(folder.path()).values<float>("w"),
                    StartsWith(part + ": the part has ") && EndsWith(" were written"));
  CHECK_THROWS_WITH(Checkpoint(folder.path()).check(), StartsWith(part + ": the part has "));

  // As long as before, but another file.
  part = renew();
  std::string other = content_of(part);
  other.replace(other.find("w[50:100]"), 9, "v[50:100]");
  put(part, other);
  CHECK_THROWS_WITH(Checkpoint(folder.path()).values<float>("w"),
                    Contains(part + ": there is no tensor \"w[50:100]\""));
  part = renew();
  other = content_of(part);
  other.replace(other.find("F32"), 3, "I32");
  put(part, other);
  CHECK_THROWS_WITH(Checkpoint(folder.path()).check(),
                    Contains(part + ": tensor \"w[50:100]\" is I32, not F32"));
  part = renew();
  other = content_of(part);
  other[8] = 'x';
  put(part, other);
  CHECK_THROWS_WITH(Checkpoint(folder.path()).check(), Contains(part + ": the header does not begin with {"));

  renew();
  Checkpoint checkpoint(folder.path());
  CHECK_THROWS_WITH(checkpoint.values<float>("v"), Contains("index.json: there is no tensor \"v\""));
  CHECK_THROWS_WITH(checkpoint.values<float>("w", 99, 101), Contains("has 100 elements, not [99, 101)"));
  CHECK_THROWS_WITH(checkpoint.values<std::int32_t>("w"), Contains("is F32, not I32"));

  CHECK_FALSE(Checkpoint::exists(folder / "none"));
  CHECK_THROWS_WITH(Checkpoint(folder / "none"),
                    Contains("none/index.json is not there: the folder has no complete"));
}

/// An index of one tensor of six elements in two parts, with something replaced.
std::string index_with(const std::string& old, const std::string& replaced) {
  std::string text = R"({"format":"ddl-checkpoint-1","generation":3,"metadata":{"a":"b"},"parts":[)"
                     R"({"file":"part-000003-0a-00000-of-00002.safetensors","bytes":100},)"
                     R"({"file":"part-000003-0a-00001-of-00002.safetensors","bytes":100}],)"
                     R"("tensors":{"w":{"dtype":"F32","shape":[2,3],"pieces":[)"
                     R"({"part":0,"begin":0,"end":4},{"part":1,"begin":4,"end":6}]}}})";
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), replaced);
}

TEST_CASE("a malformed index is refused with its name and a reason") {
  const TemporaryDirectory folder;
  const std::string path = folder / "index.json";
  put(path, index_with("a", "a"));
  CHECK(Checkpoint(folder.path()).tensor("w").pieces.size() == 2);
  const std::vector<std::vector<std::string>> rows = {
      {"{", "", "it is not valid JSON; remove it to begin anew"},
      {"}}}", "}}", "it is not valid JSON"},
      {"ddl-checkpoint-1", "ddl-checkpoint-2",
       "it has the format \"ddl-checkpoint-2\", and this program reads"},
      {"\"format\"", "\"form\"", "the index has no text \"format\""},
      {"\"ddl-checkpoint-1\"", "1", "the index has no text \"format\""},
      {"3", "-3", "the index has no number \"generation\""},
      {"3", "3.5", "the index has no number \"generation\""},
      {"{\"a\":\"b\"}", "[]", "the index has no object \"metadata\""},
      {"\"b\"", "7", "metadata has no text \"a\""},
      {"\"parts\"", "\"pants\"", "the index has no list \"parts\""},
      {"\"bytes\":100", "\"bytes\":\"100\"", "a part has no number \"bytes\""},
      {"{\"file\"", "3,{\"file\"", "a part has no text \"file\""},
      {"part-000003-0a-00000", "../../etc/part-000003-0a-00000", "the name of a part is \"../../etc/"},
      {"part-000003-0a-00000-of-00002.safetensors", "passwd", "the name of a part is \"passwd\""},
      {"\"tensors\":{", "\"tensors\":[],\"t\":{", "the index has no object \"tensors\""},
      {"\"F32\"", "\"F33\"", "tensor \"w\" has the dtype \"F33\""},
      {"\"dtype\"", "\"type\"", "tensor \"w\" has no text \"dtype\""},
      {"[2,3]", "6", "tensor \"w\" has no list \"shape\""},
      {"[2,3]", "[2,-3]", "tensor \"w\" has a shape that is not of numbers"},
      {"[2,3]", "[2,4]", "tensor \"w\": elements [6, 8) are in no part"},
      {"[2,3]", "[1,3]", "elements [0, 4) are no piece of 3"},
      {"[2,3]", "[8589934592,8589934592]", "more bytes than 64 bits can count"},
      {"\"pieces\"", "\"shards\"", "tensor \"w\" has no list \"pieces\""},
      {"\"part\":1", "\"part\":2", "has a piece in part 2, which is not there"},
      {"\"begin\":4", "\"begin\":5", "elements [4, 5) are in no part"},
      {"\"begin\":4", "\"begin\":3", "elements [3, 4) are in part 0 and in part 1"},
      {"\"begin\":4", "\"begin\":6", "elements [6, 6) are no piece of 6"},
      {"\"begin\":4,", "", "tensor \"w\" has no number \"begin\""},
      {"{\"part\":0", "7,{\"part\":0", "tensor \"w\" has no number \"part\""},
  };
  for (const std::vector<std::string>& row : rows) {
    INFO(row[0] << " -> " << row[1]);
    put(path, index_with(row[0], row[1]));
    CHECK_THROWS_WITH(Checkpoint(folder.path()), StartsWith(path + ": ") && Contains(row[2]));
  }
  put(path, "");
  CHECK_THROWS_WITH(Checkpoint(folder.path()), Contains("it is not valid JSON"));
  // Nobody's checkpoint is removed because its index cannot be read.
  put(folder / "part-000003-0a-00000-of-00002.safetensors", "x");
  CHECK_THROWS_WITH(CheckpointWriter(folder.path()),
                    Contains("it is not valid JSON; remove it to begin anew"));
  CHECK(files_in(folder.path()).size() == 2);
}

TEST_CASE("a checkpoint removes what killed jobs have left, and no file of others") {
  const TemporaryDirectory folder;
  const std::vector<float> w(4, 1);
  save(folder.path(), {{shard("w", w.data(), {4}, 0, 4)}});
  const std::set<std::string> complete = files_in(folder.path());
  const std::set<std::string> others = {"notes.txt", "part-1.safetensors",
                                        "part-000002-xyz-00000-of-00001.safetensors", "model.safetensors",
                                        "part-000002-0a-00000-of-00001.safetensors.bak"};
  for (const std::string& name : others) put(folder / name, "x");
  for (const char* const left :
       {"part-000002-12ab34cd-00003-of-00008.safetensors", "index.json.unfinished-17-0",
        "part-000002-12ab34cd-00001-of-00008.safetensors.unfinished-17-0"})
    put(folder / left, "half");
  { const CheckpointWriter writer(folder.path()); }
  std::set<std::string> expected = others;
  expected.insert(complete.begin(), complete.end());
  CHECK(files_in(folder.path()) == expected);
  CHECK(Checkpoint(folder.path()).values<float>("w") == w);
}

TEST_CASE("one job at a time writes checkpoints into a folder") {
  const TemporaryDirectory folder;
  {
    const CheckpointWriter first(folder.path());
    CHECK_THROWS_WITH(CheckpointWriter(folder.path()),
                      StartsWith(folder.path() + ": another process writes a checkpoint there now"));
  }
  CHECK_NOTHROW(CheckpointWriter(folder.path()));
  put(folder / "file", "");
  CHECK_THROWS_WITH(CheckpointWriter(folder / "file"),
                    Contains("file is not a folder that can be made or opened"));
  CHECK_NOTHROW(CheckpointWriter(folder / "new/and/deep"));
}

TEST_CASE("a part that a rank of an earlier job writes late is no part of a later checkpoint") {
  const TemporaryDirectory folder;
  const std::vector<float> old(4, 1), later(4, 2);
  std::string old_id;
  {
    CheckpointWriter killed(folder.path());
    old_id = killed.id();
  }
  CheckpointWriter writer(folder.path());
  CHECK(writer.id() != old_id);
  const std::string part =
      write_part(folder.path(), writer.id(), 0, 1, {shard("w", later.data(), {4}, 0, 4)});
  write_part(folder.path(), old_id, 0, 1, {shard("w", old.data(), {4}, 0, 4)});
  writer.finish({part}, {});
  CHECK(Checkpoint(folder.path()).values<float>("w") == later);
  CHECK(files_in(folder.path()).size() == 2);
}

/// A checkpoint of two ranks, all of whose values are its number; written by a process that is killed.
void save_numbered(const std::string& folder, float number) {
  const std::vector<float> w(2000, number);
  save(folder, {{shard("w", w.data(), {2000}, 0, 700)}, {shard("w", w.data(), {2000}, 700, 2000)}},
       {{"number", std::to_string(static_cast<int>(number))}});
}
/// The number of a whole checkpoint.
int number_of(const std::string& folder) {
  Checkpoint checkpoint(folder);
  checkpoint.check();
  const std::vector<float> values = checkpoint.values<float>("w");
  CHECK(std::set<float>(values.begin(), values.end()).size() == 1);
  CHECK(checkpoint.metadata().at("number") == std::to_string(static_cast<int>(values.front())));
  return static_cast<int>(values.front());
}

TEST_CASE("checkpoint_killed_anytime") {
  if (!ddl::test::can_trace()) DDL_SKIP("this process may not trace its children");
  const TemporaryDirectory folder;
  save_numbered(folder.path(), 1);
  int number = 1, kept = 0, replaced = 0;
  for (int stop = 1;; ++stop) {
    INFO("killed at stop " << stop);
    const bool is_killed = ddl::test::is_killed_at_stop(
        stop, [&] { save_numbered(folder.path(), static_cast<float>(number + 1)); });
    const int found = number_of(folder.path());
    CHECK((found == number || found == number + 1));
    // Once the new one is there, it stays.
    if (replaced > 0) CHECK(found == number + 1);
    ++(found == number ? kept : replaced);
    number = found;
    if (!is_killed) break;
  }
  // Each file is opened, written, synced and renamed, and so is the folder.
  CHECK(kept > 30);
  CHECK(replaced > 1);
  CHECK(files_in(folder.path()).size() == 3);
}

TEST_CASE("a file of tensors is old or new whenever its writer is killed") {
  if (!ddl::test::can_trace()) DDL_SKIP("this process may not trace its children");
  const TemporaryDirectory folder;
  const std::string path = folder / "f";
  const auto write = [&](float number) {
    const std::vector<float> w(3000, number);
    ddl::training::write_safetensors(path, {ddl::training::tensor_view("w", w.data(), {3000})});
  };
  write(0);
  float number = 0;
  int kept = 0, replaced = 0;
  for (int stop = 1;; ++stop) {
    INFO("killed at stop " << stop);
    const bool is_killed = ddl::test::is_killed_at_stop(stop, [&] { write(number + 1); });
    const std::vector<float> values = SafetensorsFile(path).values<float>("w");
    const std::set<float> found(values.begin(), values.end());
    REQUIRE(found.size() == 1);
    CHECK((*found.begin() == number || *found.begin() == number + 1));
    ++(*found.begin() == number ? kept : replaced);
    number = *found.begin();
    if (!is_killed) break;
  }
  CHECK(kept > 10);
  CHECK(replaced > 1);
  CHECK(files_in(folder.path()) == std::set<std::string>{"f"});
}

TEST_CASE("files are on the disk before they get their names, and the index comes last") {
  if (!ddl::test::can_trace()) DDL_SKIP("this process may not trace its children");
  const TemporaryDirectory folder;
  const std::vector<std::string> one_file = {"fsync", "rename", "fsync"};
  CHECK(ddl::test::syncs_and_renames([&] { ddl::training::write_safetensors(folder / "f", {}); }) ==
        one_file);
  // The folder's own name first, then two parts and the index.
  std::vector<std::string> expected = {"fsync"};
  for (int i = 0; i < 3; ++i) expected.insert(expected.end(), one_file.begin(), one_file.end());
  CHECK(ddl::test::syncs_and_renames([&] { save_numbered(folder / "c", 1); }) == expected);
}

}  // namespace checkpoint_cases
