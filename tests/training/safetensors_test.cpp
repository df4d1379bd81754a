#include "ddl/training/safetensors.hpp"

#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/temporary_directory.h"
#include "training/child.h"

namespace safetensors_cases {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using ddl::test::TemporaryDirectory;
using ddl::training::SafetensorsFile;
using ddl::training::tensor_view;
using ddl::training::TensorView;
using ddl::training::write_safetensors;

std::string text_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}
void write_text_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}
std::string number_of_8_bytes(std::uint64_t number) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(number >> 8 * i & 0xFF);
  return bytes;
}
std::string with_length(const std::string& header, std::size_t data_bytes) {
  return number_of_8_bytes(header.size()) + header + std::string(data_bytes, '\1');
}
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// A file with two tensors, byte by byte. 1.0 is 0x3F800000, -2.5 is -(1.25 * 2) = 0xC0200000.
const std::string& golden() {
  static const std::string kBytes = std::string("\x98\0\0\0\0\0\0\0", 8) +
                                    R"({"__metadata__":{"step":"7"},)"
                                    R"("weight":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                                    R"("seen":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})"
                                    "       " +
                                    std::string("\0\0\x80\x3F\0\0\x20\xC0", 8) + "\1\2\xFF";
  return kBytes;
}

TEST_CASE("safetensors_golden") {
  const TemporaryDirectory folder;
  const std::string path = folder / "model.safetensors";
  const float weight[] = {1.0F, -2.5F};
  const std::uint8_t seen[] = {1, 2, 255};
  write_safetensors(path, {tensor_view("seen", seen, {3}), tensor_view("weight", weight, {2, 1})},
                    {{"step", "7"}});
  CHECK(text_of(path) == golden());
  CHECK(names_in(folder.path()) == std::vector<std::string>{"model.safetensors"});

  write_text_file(folder / "given", golden());
  const SafetensorsFile file(folder / "given");
  REQUIRE(file.tensors().size() == 2);
  CHECK(file.tensors()[0].name == "weight");
  CHECK(file.tensor("weight").dtype == DDL_FLOAT32);
  CHECK(file.tensor("weight").shape == std::vector<std::uint64_t>{2, 1});
  CHECK(file.values<float>("weight") == std::vector<float>{1.0F, -2.5F});
  CHECK(file.tensor("seen").shape == std::vector<std::uint64_t>{3});
  CHECK(file.values<std::uint8_t>("seen") == std::vector<std::uint8_t>{1, 2, 255});
  CHECK(file.values<std::uint8_t>("seen", 1, 2) == std::vector<std::uint8_t>{2});
  CHECK(file.metadata() == ddl::training::Metadata{{"step", "7"}});
  CHECK(std::memcmp(file.data("seen"), seen, 3) == 0);
  CHECK(file.count("weight") == 2);
  CHECK(file.has("seen"));
  CHECK_FALSE(file.has("bias"));
  CHECK(file.size() == golden().size());
}

TEST_CASE("the smallest safetensors file") {
  const TemporaryDirectory folder;
  write_safetensors(folder / "empty", {});
  CHECK(text_of(folder / "empty") == std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  CHECK(SafetensorsFile(folder / "empty").tensors().empty());
  // Without blanks, as other writers may have it.
  write_text_file(folder / "shorter", with_length("{}", 0));
  CHECK(SafetensorsFile(folder / "shorter").tensors().empty());
}

TEST_CASE("what other writers of safetensors may do is read") {
  const TemporaryDirectory folder;
  const std::string path = folder / "foreign";
  // Not aligned, in another order, with blanks in JSON, escapes, a scalar, empty tensors, and no metadata.
  const std::string header =
      "{ \"a\\u0062\\n\" : {\"shape\": [], \"data_offsets\": [1, 5], \"dtype\": \"I32\"},\n"
      "\"none\":{\"dtype\":\"F64\",\"shape\":[3,0,9],\"data_offsets\":[5,5]},"
      "\"first\":{\"dtype\":\"BOOL\",\"shape\":[1,1],\"data_offsets\":[0,1]} }  ";
  write_text_file(path, with_length(header, 5));
  const SafetensorsFile file(path);
  CHECK(file.values<std::int32_t>("ab\n") == std::vector<std::int32_t>{0x01010101});
  CHECK(file.count("ab\n") == 1);
  CHECK(file.values<double>("none").empty());
  bool first = false;
  file.read("first", 0, 1, &first);
  CHECK(first);
}

/// NaNs count, too.
bool has_same_bytes(const void* a, const void* b, std::size_t bytes) { return std::memcmp(a, b, bytes) == 0; }

template <class T>
void check_type(const char* name) {
  INFO(name);
  const TemporaryDirectory folder;
  const std::string path = folder / "t";
  std::vector<T> values(5);
  std::memset(static_cast<void*>(values.data()), 0x35, values.size() * sizeof(T));
  write_safetensors(path, {tensor_view("x", values.data(), {5})});
  CHECK(text_of(path).find("\"dtype\":\"" + std::string(name) + "\"") != std::string::npos);
  const SafetensorsFile file(path);
  const std::vector<T> found = file.values<T>("x", 1, 4);
  REQUIRE(found.size() == 3);
  CHECK(has_same_bytes(found.data(), values.data(), 3 * sizeof(T)));
  CHECK_THROWS_WITH((file.values<std::conditional_t<std::is_same_v<T, float>, double, float>>("x")),
                    Contains("tensor \"x\" is " + std::string(name) + ", not F"));
}

TEST_CASE("every type of safetensors that libddl has is written and read") {
  check_type<double>("F64");
  check_type<float>("F32");
  check_type<ddl::float16>("F16");
  check_type<ddl::bfloat16>("BF16");
  check_type<std::int64_t>("I64");
  check_type<std::int32_t>("I32");
  check_type<std::int16_t>("I16");
  check_type<std::int8_t>("I8");
  check_type<std::uint64_t>("U64");
  check_type<std::uint32_t>("U32");
  check_type<std::uint16_t>("U16");
  check_type<std::uint8_t>("U8");
  check_type<ddl::float8_e4m3fn>("F8_E4M3");
  check_type<ddl::float8_e5m2>("F8_E5M2");

  const TemporaryDirectory folder;
  const bool flags[] = {true, false, true};
  write_safetensors(folder / "b", {tensor_view("x", flags, {3})});
  bool found[2] = {};
  SafetensorsFile(folder / "b").read("x", 1, 3, found);
  CHECK((!found[0] && found[1]));
}

TEST_CASE("each tensor of a written file begins at a multiple of its elements' size") {
  const TemporaryDirectory folder;
  const std::vector<double> values(9);
  const void* const data = values.data();
  write_safetensors(folder / "f", {{"a", DDL_UINT8, {3}, data},
                                   {"b", DDL_FLOAT64, {2}, data},
                                   {"c", DDL_FLOAT16, {5}, data},
                                   {"d", DDL_FLOAT32, {1}, data},
                                   {"e", DDL_BOOL, {7}, data}});
  const SafetensorsFile file(folder / "f");
  for (const auto& tensor : file.tensors()) {
    INFO(tensor.name);
    CHECK(reinterpret_cast<std::uintptr_t>(file.data(tensor.name)) % ddl_dtype_size(tensor.dtype) == 0);
  }
}

struct Malformed {
  const char* what;
  std::string bytes;
  const char* message;
};

/// One tensor, with this entry in place of "w"'s.
Malformed entry(const char* what, const std::string& entry, const char* message, std::size_t data_bytes = 8) {
  return {what, with_length("{\"w\":" + entry + "}", data_bytes), message};
}
Malformed header(const char* what, const std::string& header, const char* message,
                 std::size_t data_bytes = 0) {
  return {what, with_length(header, data_bytes), message};
}
const std::string kW = R"("w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";

std::vector<Malformed> malformed() {
  std::string ones;
  for (int i = 0; i < 64; ++i) ones += ",1";
  return {
      {"an empty file", "", "the file has 0 bytes; a safetensors file begins with the 8 bytes of a length"},
      {"seven bytes", "1234567", "the file has 7 bytes"},
      {"only a length", number_of_8_bytes(2), "lost its end: the header has 2 bytes, and 0 are there"},
      {"a header that is cut",
       number_of_8_bytes(100) + "{\"w\":", "the header has 100 bytes, and 5 are there"},
      {"a header above the limit", number_of_8_bytes(100'000'001) + "{}",
       "the header would have 100000001 bytes, more than the 100000000 that are allowed"},
      {"a zip file, as torch.save() makes it", "PK\3\4" + std::string(20, 'x'),
       "this is no safetensors file"},
      {"the largest length", number_of_8_bytes(~std::uint64_t{0}) + "{}", "more than the 100000000"},
      header("an empty header", "", "the header does not begin with {"),
      header("a blank first", " {}", "the header does not begin with {"),
      header("a list", "[]", "the header does not begin with {"),
      header("no JSON", "{w}", "the header is not valid JSON at its byte 2"),
      header("JSON that is cut", "{" + kW, "the header is not valid JSON", 8),
      header("something behind the header", "{} {}", "the header is not valid JSON at its byte 4"),
      header("zeros behind the header", std::string("{}\0\0", 4), "the header has a byte 0"),
      header("a comment", "{}//", "the header is not valid JSON"),
      header("a name that is not UTF-8", "{\"\xFF\":1}", "the header is not valid JSON"),
      header("half a surrogate", "{\"\\ud800\":1}", "the header is not valid JSON"),
      header("a tensor that is a number", "{\"w\":3}", "\"w\" is a number, not an object"),
      header("a tensor that is null", "{\"w\":null}", "\"w\" is null, not an object"),
      header("a tensor that is a list", "{\"w\":[[[[[[]]]]]]}", "\"w\" is a list, not an object"),
      header("two of a name", "{" + kW + "," + kW + "}", "the name \"w\" is there twice", 8),
      header("two of a name, by an escape", "{" + kW + R"(,"\u0077":{"dtype":"F32"}})",
             "\"w\" is there twice", 8),
      header("metadata that are a list", R"({"__metadata__":[]})",
             "\"__metadata__\" is a list, not an object"),
      header("a number in the metadata", R"({"__metadata__":{"a":1}})",
             "the metadata \"a\" are a number, not a text"),
      header("an object in the metadata", R"({"__metadata__":{"a":{}}})", "the metadata \"a\" are an object"),
      header("metadata twice", R"({"__metadata__":{"a":"","a":""}})", "the metadata \"a\" are there twice"),
      header("two metadata", R"({"__metadata__":{},"__metadata__":{}})", "\"__metadata__\" is there twice"),
      entry("no dtype", R"({"shape":[2],"data_offsets":[0,8]})", "tensor \"w\" has no dtype"),
      entry("no shape", R"({"dtype":"F32","data_offsets":[0,8]})", "tensor \"w\" has no shape"),
      entry("no offsets", R"({"dtype":"F32","shape":[2]})", "tensor \"w\" has no data_offsets"),
      entry("an unknown dtype", R"({"dtype":"F4","shape":[2],"data_offsets":[0,8]})", "has the dtype \"F4\""),
      entry("a dtype in small letters", R"({"dtype":"f32","shape":[2],"data_offsets":[0,8]})",
            "dtype \"f32\""),
      entry("a dtype that is a number", R"({"dtype":32,"shape":[2],"data_offsets":[0,8]})",
            "has a number as its dtype"),
      entry("a dtype in a list", R"({"dtype":["F32"],"shape":[2],"data_offsets":[0,8]})",
            "has a list as its dtype"),
      entry("an unknown field", R"({"dtype":"F32","stride":[1],"shape":[2],"data_offsets":[0,8]})",
            "has the unknown field \"stride\""),
      entry("two shapes", R"({"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]})",
            "has two fields \"shape\""),
      entry("a shape that is a number", R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})",
            "has a number as its shape"),
      entry("a negative dimension", R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})",
            "has a negative number in its shape"),
      entry("a broken dimension", R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})",
            "has a number that is no integer of 64 bits in its shape"),
      entry("a dimension above 64 bits",
            R"({"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8]})",
            "has a number that is no integer of 64 bits in its shape"),
      entry("a text as dimension", R"({"dtype":"F32","shape":["2"],"data_offsets":[0,8]})",
            "has a text in its shape"),
      entry("a list as dimension", R"({"dtype":"F32","shape":[[2]],"data_offsets":[0,8]})",
            "has a list in its shape"),
      entry("65 dimensions", R"({"dtype":"F32","shape":[2)" + ones + R"(],"data_offsets":[0,8]})",
            "has more than 64 dimensions"),
      entry("a shape whose product is 0 in 64 bits",
            R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})",
            "has more bytes than 64 bits can count", 0),
      entry("a shape whose bytes are 0 in 64 bits",
            R"({"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]})",
            "has more bytes than 64 bits can count", 0),
      entry("an empty shape beside too many elements",
            R"({"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0]})",
            "has more bytes than 64 bits can count", 0),
      entry("one offset", R"({"dtype":"F32","shape":[2],"data_offsets":[8]})",
            "has less than two data_offsets"),
      entry("three offsets", R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,8]})",
            "has more than two data_offsets"),
      entry("a negative offset", R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})",
            "has a negative number in its data_offsets"),
      entry("an end before the beginning", R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})",
            "ends before it begins"),
      entry("fewer bytes than its shape", R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})",
            "has a shape of 12 bytes, but 8 in its data_offsets"),
      entry("more bytes than its shape", R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})",
            "has a shape of 4 bytes, but 8 in its data_offsets"),
      entry("a hole at the beginning", R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})",
            "there is a hole of 4 bytes before tensor \"w\""),
      header("a hole between", "{" + kW + R"(,"x":{"dtype":"U8","shape":[2],"data_offsets":[10,12]}})",
             "there is a hole of 2 bytes before tensor \"x\"", 12),
      header("an overlap", "{" + kW + R"(,"x":{"dtype":"U8","shape":[4],"data_offsets":[6,10]}})",
             "tensor \"x\" overlaps the tensor before it", 10),
      header("twice the same data", "{" + kW + R"(,"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
             "tensor \"x\" overlaps the tensor before it", 8),
      header("data that are cut", "{" + kW + "}", "the tensors have 8 bytes, and 7 are there", 7),
      header("data behind the last tensor", "{" + kW + "}", "2 bytes behind the last tensor belong to none",
             10),
      header("a line break in a name", "{\"a\\nb\":1}", "\"a\\nb\" is a number"),
      header("a long name", "{\"" + std::string(100'000, 'n') + "\":1}", "nnn...\" is a number"),
  };
}

TEST_CASE("malformed safetensors files are refused with the file's name and a reason") {
  const TemporaryDirectory folder;
  const std::string path = folder / "bad.safetensors";
  CHECK(malformed().size() >= 25);
  for (const Malformed& one : malformed()) {
    INFO(one.what);
    write_text_file(path, one.bytes);
    CHECK_THROWS_WITH(SafetensorsFile(path), StartsWith(path + ": ") && Contains(one.message));
    try {
      const SafetensorsFile file(path);
    } catch (const ddl::Error& error) {
      CHECK(error.status() == DDL_ERROR_INVALID_ARGUMENT);
      CHECK(std::string(error.what()).size() < path.size() + 500);
    }
  }
}

TEST_CASE("a golden file that is cut anywhere, or has a bit more, is refused") {
  const TemporaryDirectory folder;
  const std::string path = folder / "cut";
  for (std::size_t length = 0; length < golden().size(); ++length) {
    INFO(length);
    write_text_file(path, golden().substr(0, length));
    CHECK_THROWS_AS(SafetensorsFile(path), ddl::Error);
  }
  write_text_file(path, golden() + "x");
  CHECK_THROWS_AS(SafetensorsFile(path), ddl::Error);
}

TEST_CASE("a deep or endless header needs no stack and no memory") {
  const TemporaryDirectory folder;
  const std::string path = folder / "deep";
  write_text_file(path, with_length("{\"w\":" + std::string(1'000'000, '['), 0));
  CHECK_THROWS_WITH(SafetensorsFile(path), Contains("\"w\" is a list"));
  write_text_file(path, with_length("{\"w\":{\"shape\":[1" + std::string(1'000'000, ' '), 0));
  CHECK_THROWS_WITH(SafetensorsFile(path), Contains("not valid JSON"));
}

TEST_CASE("reads of a safetensors file are checked") {
  const TemporaryDirectory folder;
  const std::string path = folder / "g";
  write_text_file(path, golden());
  const SafetensorsFile file(path);
  CHECK_THROWS_WITH(file.tensor("bias"), Contains("there is no tensor \"bias\""));
  CHECK_THROWS_WITH(file.data("bias"), StartsWith(path));
  CHECK_THROWS_WITH(file.values<float>("weight", 1, 3),
                    Contains("tensor \"weight\" has 2 elements, not [1, 3)"));
  CHECK_THROWS_WITH(file.values<float>("weight", 2, 1), Contains("not [2, 1)"));
  CHECK_THROWS_WITH(file.values<float>("weight", 0, ~std::uint64_t{0}), Contains("has 2 elements"));
  CHECK(file.values<float>("weight", 2, 2).empty());
  CHECK_THROWS_WITH(file.values<std::int32_t>("weight"), Contains("is F32, not I32"));
  CHECK_THROWS_WITH(SafetensorsFile(folder / "none"), Contains("none cannot be opened: No such file"));
  CHECK_THROWS_WITH(SafetensorsFile(folder.path()), Contains("it is not a file"));
}

TEST_CASE("writers of safetensors refuse what the format cannot have, and leave the old file") {
  const TemporaryDirectory folder;
  const std::string path = folder / "kept";
  write_text_file(path, golden());
  const float one = 1;
  const auto refused = [&](const std::vector<TensorView>& tensors, const char* message) {
    CHECK_THROWS_WITH(write_safetensors(path, tensors), Contains(message));
    CHECK(text_of(path) == golden());
    CHECK(names_in(folder.path()).size() == 1);
  };
  refused({tensor_view("w", &one, {1}), tensor_view("w", &one, {})}, "tensor \"w\" is given twice");
  refused({tensor_view("__metadata__", &one, {1})}, "cannot be the name of a tensor");
  refused({{"w", DDL_FLOAT8_E4M3FNUZ, {1}, &one}}, "type 770, which safetensors does not have");
  refused({{"w", DDL_FLOAT32, {1}, nullptr}}, "tensor \"w\" has no data");
  refused({tensor_view("w", &one, {~std::uint64_t{0}})}, "more bytes than 64 bits can count");
  refused({tensor_view("\xFF", &one, {1})}, "is not UTF-8");
  CHECK_THROWS_WITH(write_safetensors(path, {}, {{"a", "\xC3"}}), Contains("is not UTF-8"));
  CHECK_THROWS_WITH(write_safetensors(folder / "no/folder", {}), Contains("cannot be made: No such file"));
}

TEST_CASE("names that JSON escapes are read back") {
  const TemporaryDirectory folder;
  const std::string name = "a\"b\\c\n\t\x01\xC3\xA4[0:5]/";
  const float one = 1.5;
  write_safetensors(folder / "n", {tensor_view(name, &one, {1})}, {{name, name}, {"", ""}});
  const SafetensorsFile file(folder / "n");
  CHECK(file.values<float>(name) == std::vector<float>{1.5});
  CHECK(file.metadata() == ddl::training::Metadata{{name, name}, {"", ""}});
}

TEST_CASE("a file that is open stays as it was when it is replaced") {
  const TemporaryDirectory folder;
  const std::vector<float> old(1000, 1), later(10, 2);
  write_safetensors(folder / "f", {tensor_view("w", old.data(), {1000})});
  const SafetensorsFile file(folder / "f");
  write_safetensors(folder / "f", {tensor_view("w", later.data(), {10})});
  CHECK(file.values<float>("w") == old);
  CHECK(SafetensorsFile(folder / "f").values<float>("w") == later);
}

TEST_CASE("the next writer removes what killed writers have left, and nothing else") {
  const TemporaryDirectory folder;
  const float one = 1;
  write_text_file(folder / "f.unfinished-12345-0", "half");
  write_text_file(folder / "f.unfinished-12345-1", "");
  write_text_file(folder / "g.unfinished-12345-0", "of another file");
  write_text_file(folder / "f.backup", "the user's");
  // Of a writer that is alive.
  const ddl::training::detail::OpenFile alive(
      ::open((folder / "f.unfinished-77-0").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  REQUIRE(::flock(alive.get(), LOCK_EX) == 0);
  write_safetensors(folder / "f", {tensor_view("w", &one, {1})});
  CHECK(names_in(folder.path()) ==
        std::vector<std::string>{"f", "f.backup", "f.unfinished-77-0", "g.unfinished-12345-0"});
}

TEST_CASE("several writers of one file in one process and beside each other") {
  const TemporaryDirectory folder;
  ddl::training::detail::ReplacedFile first(folder / "f"), second(folder / "f");
  first.write("first", 5);
  second.write("second", 6);
  second.commit();
  CHECK(text_of(folder / "f") == "second");
  first.commit();
  CHECK(text_of(folder / "f") == "first");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"f"});
}

TEST_CASE("a file that cannot be written to its end is an error, and the old one stays") {
  const TemporaryDirectory folder;
  const std::string path = folder / "f";
  write_text_file(path, golden());
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const ddl::training::detail::OpenFile out(pipe[0]), in(pipe[1]);
  const pid_t child = ddl::test::fork_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10'000, 10'000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return;
    const std::vector<float> large(100'000);
    try {
      write_safetensors(path, {tensor_view("w", large.data(), {100'000})});
      (void)!::write(in.get(), "written", 7);
    } catch (const ddl::Error& error) {
      const std::string text = std::to_string(error.status()) + " " + error.what();
      (void)!::write(in.get(), text.data(), text.size());
    }
  });
  CHECK(ddl::test::wait_for_child(child) == 0);
  char told[500];
  const ssize_t length = ::read(out.get(), told, sizeof told);
  REQUIRE(length > 0);
  CHECK(std::string(told, static_cast<std::size_t>(length)) ==
        "9 " + path + " cannot be written: File too large");
  CHECK(text_of(path) == golden());
  CHECK(names_in(folder.path()) == std::vector<std::string>{"f"});
}

TEST_CASE("a written file has the permissions of the umask") {
  const TemporaryDirectory folder;
  const mode_t before = ::umask(027);
  write_safetensors(folder / "f", {});
  ::umask(before);
  struct stat status = {};
  REQUIRE(::stat((folder / "f").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0640);
}

}  // namespace safetensors_cases
