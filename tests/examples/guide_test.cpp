// The guide agrees with the program.
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "examples/xml.h"
#include "support/catch.h"

namespace {

std::string guide_content(const std::string& path) {
  std::ifstream in(DDL_SOURCE_DIR "/" + path, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Piece {
  std::string language;
  std::string text;
};

/// The pieces of code in these languages, in their order.
std::vector<Piece> pieces_in(const std::string& guide) {
  std::vector<Piece> pieces;
  const std::string fence = "```";
  for (std::size_t at = guide.find(fence); at != std::string::npos;) {
    const std::size_t line_end = guide.find('\n', at), end = guide.find(fence, line_end);
    const std::string language = guide.substr(at + fence.size(), line_end - at - fence.size());
    if (language == "cpp" || language == "python")
      pieces.push_back({language, guide.substr(line_end + 1, end - line_end - 1)});
    at = guide.find(fence, end + fence.size());
  }
  return pieces;
}

/// Between a heading and the next one, of any level.
std::string section(const std::string& guide, const std::string& heading) {
  const std::size_t begin = guide.find("\n" + heading);
  INFO(heading);
  REQUIRE(begin != std::string::npos);
  return guide.substr(begin, guide.find("\n#", begin + 1) - begin);
}

/// The number of the step to which a piece belongs in a program: of the last comment "Step N:" before it. 0: none.
int step_of(const std::string& program, const std::string& piece) {
  const std::size_t at = program.find(piece);
  if (at == std::string::npos) return 0;
  const std::string mark = "Step ";
  const std::size_t found = program.rfind(mark, at);
  return found == std::string::npos ? 0 : std::stoi(program.substr(found + mark.size()));
}

}  // namespace

TEST_CASE("every piece of C++ in the guide's walk is part of the example") {
  const std::string program = guide_content("examples/function_approximation/main.cpp");
  const std::string guide = guide_content("docs/guide/training.md");
  const std::size_t walk = guide.find("\n## A program in C++, line by line\n");
  REQUIRE(walk != std::string::npos);
  const std::vector<Piece> pieces = pieces_in(guide.substr(walk));
  for (const Piece& piece : pieces) {
    INFO(piece.text);
    CHECK(piece.language == "cpp");
    CHECK(program.find(piece.text) != std::string::npos);
  }
  CHECK(pieces.size() > 3);
}

TEST_CASE("the guide's six steps are those of the three programs of digits") {
  const std::string guide = guide_content("docs/guide/training.md");
  const std::string cpp = guide_content("examples/mnist/main.cpp");
  const std::string pytorch = guide_content("examples/python/mnist.py");
  const std::string keras = guide_content("examples/python/mnist_keras.py");
  for (int step = 1; step <= 6; ++step) {
    const std::vector<Piece> pieces = pieces_in(section(guide, "### Step " + std::to_string(step) + ": "));
    REQUIRE(pieces.size() == 3);
    CHECK(pieces[0].language + pieces[1].language + pieces[2].language == "cpppythonpython");
    INFO(pieces[0].text << pieces[1].text << pieces[2].text);
    CHECK(step_of(cpp, pieces[0].text) == step);
    CHECK(step_of(pytorch, pieces[1].text) == step);
    CHECK(step_of(keras, pieces[2].text) == step);
  }
  const std::size_t walk = guide.find("\n## A program in C++, line by line\n");
  REQUIRE(walk != std::string::npos);
  CHECK(pieces_in(guide.substr(0, walk)).size() == 18);
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
