// The guide agrees with the program.
#include <fstream>
#include <iterator>
#include <string>

#include "examples/xml.h"
#include "support/catch.h"

namespace {

std::string guide_content(const std::string& path) {
  std::ifstream in(DDL_SOURCE_DIR "/" + path, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("every piece of C++ in the guide is part of the example") {
  const std::string program = guide_content("examples/function_approximation/main.cpp");
  const std::string guide = guide_content("docs/guide/training.md");
  int pieces = 0;
  const std::string fence = "```cpp\n";
  for (std::size_t at = guide.find(fence); at != std::string::npos; at = guide.find(fence, at + 1)) {
    const std::size_t begin = at + fence.size();
    const std::string piece = guide.substr(begin, guide.find("```", begin) - begin);
    INFO(piece);
    CHECK(program.find(piece) != std::string::npos);
    ++pieces;
  }
  CHECK(pieces > 3);
}

TEST_CASE("the pictures of the guide exist and are well-formed") {
  const std::string guide = guide_content("docs/guide/training.md");
  int pictures = 0;
  for (std::size_t at = guide.find("!["); at != std::string::npos; at = guide.find("![", at + 1)) {
    const std::size_t begin = guide.find("](", at) + 2;
    const std::string name = guide.substr(begin, guide.find(')', begin) - begin);
    INFO(name);
    CHECK_NOTHROW(ddl::test::parse_xml(guide_content("docs/guide/" + name)));
    ++pictures;
  }
  CHECK(pictures == 2);
}
