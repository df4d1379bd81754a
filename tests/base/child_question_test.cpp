#include "base/child_question.h"

#include <unistd.h>

#include <csignal>

#include "support/catch.h"

using ddl::ChildQuestion;
using ddl::Deadline;
using ddl::ErrorCode;

namespace {

ddl::Result<std::string> answer_to(const std::function<std::string()>& question) {
  auto child = ChildQuestion::ask(question);
  REQUIRE(child);
  return child->answer(Deadline::after(std::chrono::seconds(20)));
}

}  // namespace

TEST_CASE("a child's answer of any length arrives complete, or not at all") {
  CHECK(answer_to([] { return std::string(); }).value() == "");
  CHECK(answer_to([] { return std::string("a\0b", 3); }).value() == std::string("a\0b", 3));
  // More than a pipe holds; this much was once cut without an error.
  const std::string text = std::string(3'000'000, 'x') + "end";
  const bool is_whole =
      answer_to([&] { return std::string(text); }) == text;  // Catch2 takes minutes to print such a text
  CHECK(is_whole);

  const auto endless = answer_to([] { return std::string().append(17'000'000, 'x'); });
  REQUIRE_FALSE(endless);
  CHECK(endless.error().code() == ErrorCode::kProtocol);
  CHECK(endless.error().message() == "its answer is longer than 16 megabytes");
}

TEST_CASE("a child that ends before its answer is complete is an error") {
  const auto left = answer_to([]() -> std::string { ::_exit(0); });
  REQUIRE_FALSE(left);
  CHECK(left.error().message() == "it ended without an answer");
  const auto crashed = answer_to([]() -> std::string {
    ::raise(SIGKILL);
    return "";
  });
  REQUIRE_FALSE(crashed);
  CHECK(crashed.error().message() == "it crashed: SIGKILL");
}
