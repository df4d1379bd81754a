#include "report/timeline_view.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>

#include "report/timeline_fixture.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace ddl::test;
using Catch::Matchers::Contains;

namespace {

std::string page_of(const TrainingJob& job, const std::string& title = "t.json") {
  const TemporaryDirectory folder;
  return write_timeline_and_page(folder / "t.json", job, title);
}

/// The text between the two others, which stand once in the page.
std::string between(const std::string& page, const std::string& before, const std::string& after) {
  const std::size_t begin = page.find(before);
  REQUIRE(begin != std::string::npos);
  CHECK(page.find(before, begin + 1) == std::string::npos);
  const std::size_t end = page.find(after, begin);
  REQUIRE(end != std::string::npos);
  return page.substr(begin + before.size(), end - begin - before.size());
}

}  // namespace

TEST_CASE("the page of a timeline loads nothing, and admits only its own script") {
  const std::string page = page_of({});
  for (const char* const part :
       {"http:", "https:", "url(", " src=", " href=", "javascript:", "@import", "fetch(", "XMLHttpRequest",
        "WebSocket", "innerHTML", "eval(", " onclick=", " onload="})
    CHECK_THAT(page, !Contains(part));
  const std::string script = between(page, "<script>", "</script>");
  std::array<unsigned char, 32> hash{};
  REQUIRE(EVP_Digest(script.data(), script.size(), hash.data(), nullptr, EVP_sha256(), nullptr) == 1);
  std::array<unsigned char, 45> text{};
  EVP_EncodeBlock(text.data(), hash.data(), hash.size());
  CHECK_THAT(page, Contains("content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" +
                            std::string(reinterpret_cast<const char*>(text.data())) +
                            "'; base-uri 'none'; form-action 'none'\""));
  CHECK_THAT(script, !Contains("<!--"));
}

TEST_CASE("the events lie in the page as base64 of few bytes") {
  TrainingJob job;
  job.steps = 200;
  const std::string data = between(page_of(job), "<script type=\"text/plain\" id=\"data\">", "</script>");
  CHECK(data.size() < 500'000);
  CHECK(std::all_of(data.begin(), data.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/' || c == '=';
  }));
}

TEST_CASE("nothing that a program, a host or a file is called becomes a part of the page") {
  const std::string evil = "</script><img onerror=alert(1)>{{{data}}}\"'&\u202e";
  TrainingJob job;
  job.range = evil;
  job.host = evil;
  const std::string page = page_of(job, evil);
  CHECK_THAT(page, !Contains("<img") && !Contains("\u202e"));
  CHECK_THAT(page, Contains("&lt;/script&gt;&lt;img onerror=alert(1)&gt;"));
  // The data's, and the script's.
  std::size_t ends = 0;
  for (std::size_t at = page.find("</script>"); at != std::string::npos; at = page.find("</script>", at + 1))
    ++ends;
  CHECK(ends == 2);
}
