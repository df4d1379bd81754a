// Unknown keys, keys that occur twice, and invalid values are reported with their lines.
#include "templates/profile/yaml.h"

#include "support/catch.h"

using namespace ddl::templates;

namespace {

struct Fields {
  std::string name;
  int count = 1;
  bool flag = false;
  int inner = 0;
};

/// The error's sentence, "" if there is none.
std::string read(std::string_view text, Fields& fields) {
  const auto root = parse_yaml(text, "f.yaml");
  REQUIRE(root);
  const auto status =
      read_fields(*root, "f.yaml",
                  {{"name", into(fields.name)},
                   {"count", into(fields.count, 1, 9)},
                   {"flag", into(fields.flag)},
                   {"part", [&](const YamlNode& part) {
                      return read_fields(part, "f.yaml", {{"inner", into(fields.inner, 0, 5)}});
                    }}});
  return status ? "" : status.error().message();
}

std::string fields_error(std::string_view text) {
  Fields fields;
  return read(text, fields);
}

}  // namespace

TEST_CASE("keys go to their fields, and fields without a key are unchanged") {
  Fields fields;
  CHECK(read("name: a b\nflag: true\npart:\n  inner: 3\n", fields).empty());
  CHECK(fields.name == "a b");
  CHECK(fields.count == 1);
  CHECK(fields.flag);
  CHECK(fields.inner == 3);
}

TEST_CASE("errors of fields come with file, line and key") {
  CHECK(fields_error("name: x\ncuont: 3\n") ==
        "f.yaml:2: unknown key cuont; the keys here are name, count, flag, part");
  CHECK(fields_error("[1]: 3\n").find("f.yaml:1: unknown key") == 0);
  CHECK(fields_error("name: x\nname: y\n") == "f.yaml:2: name occurs twice");
  CHECK(fields_error("count: 10\n") == "f.yaml:1: count: it takes a number from 1 to 9");
  CHECK(fields_error("count: [1]\n") == "f.yaml:1: count: it takes a number from 1 to 9");
  CHECK(fields_error("name:\n") == "f.yaml:1: name: it takes one text");
  CHECK(fields_error("flag: yes\n") == "f.yaml:1: flag: it takes true or false");
  CHECK(fields_error("- a\n") == "f.yaml:1: keys with values are expected here: name, count, flag, part");
  // For an error within a map, the inner line is reported, and only once.
  CHECK(fields_error("part:\n  inner: 7\n") == "f.yaml:2: inner: it takes a number from 0 to 5");
  CHECK(fields_error("name: x\npart: 3\n") == "f.yaml:2: keys with values are expected here: inner");
}
