// The page of a timeline in a real browser, without a window and without a network.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/command_output.h"
#include "report/timeline_fixture.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace ddl::test;
using Catch::Matchers::Contains;

namespace {

/// What a browser has made of a page.
struct Shown {
  std::string dom;     ///< HTML
  std::string errors;  ///< what the browser says of scripts and policies

  /// Of the element <html>: data-NAME; "" if there is none.
  std::string data(const std::string& name) const {
    const std::string before = "data-" + name + "=\"";
    const std::size_t begin = dom.find(before);
    if (begin == std::string::npos) return "";
    return dom.substr(begin + before.size(), dom.find('"', begin + before.size()) - begin - before.size());
  }
};

class Page {
 public:
  explicit Page(const TrainingJob& job) {
    const std::string page = write_timeline_and_page(folder_ / "t.json", job);
    bytes_ = std::filesystem::file_size(folder_ / "t.json");
    page_bytes_ = page.size();
    std::ofstream(folder_ / "view.html", std::ios::binary) << page;
  }

  std::uintmax_t bytes() const { return bytes_; }
  std::uintmax_t page_bytes() const { return page_bytes_; }

  /// The page at this address, after "#". There is no script error, and nothing that its policy forbids.
  Shown show(const std::string& address) const {
    // The browser's clock runs ahead while the page has nothing to do, so a slow machine does not end it too early.
    const auto output =
        ddl::command_output({DDL_CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
                             "--user-data-dir=" + folder_ / "profile", "--window-size=1400,900",
                             "--enable-logging=stderr", "--v=0", "--virtual-time-budget=60000", "--dump-dom",
                             "file://" + folder_ / "view.html" + "#" + address},
                            "", std::chrono::minutes(4));
    if (!output) FAIL(output.error().message());
    Shown shown{output->out, output->err};
    INFO(shown.errors);
    CHECK(shown.data("state") == "drawn");
    CHECK(shown.data("problems").empty());
    CHECK_THAT(shown.errors, !Contains("CONSOLE") && !Contains("Content Security Policy"));
    return shown;
  }

 private:
  TemporaryDirectory folder_;
  std::uintmax_t bytes_ = 0, page_bytes_ = 0;
};

std::string seconds(std::int64_t nanoseconds) {
  return std::to_string(static_cast<double>(nanoseconds) / 1e9);
}

/// What is between two times in the middle of a step, and what a search finds.
void check_page(const Page& page, const TrainingJob& job) {
  const std::int64_t events = std::int64_t{job.ranks} * job.steps;
  const Shown whole = page.show("");
  CHECK(std::stoll(whole.data("visible")) > 0);
  CHECK(whole.data("matches").empty());

  Shown found = page.show("search=forward");
  CHECK(found.data("matches") == std::to_string(events));
  found = page.show("search=LAYER2");  // layer20 and layer2
  CHECK(found.data("matches") == std::to_string(2 * events));
  found = page.show("search=no+such+name");
  CHECK(found.data("matches") == "0");

  // In the forward pass of step 1 each rank is in two ranges: the step's and this one.
  const std::int64_t middle = TrainingJob::kStep + 3'000'000;
  const Shown zoomed = page.show("from=" + seconds(middle) + "&to=" + seconds(middle + 100'000));
  CHECK(zoomed.data("visible") == std::to_string(2 * job.ranks));

  const Shown selected = page.show("search=backward&match=1");
  CHECK_THAT(selected.dom, Contains("<h2>backward<span>rank ") && Contains("<dt>duration</dt>"));
}

}  // namespace

TEST_CASE("a browser draws the events of a timeline, finds them by name, and shows a part of the time") {
  TrainingJob job;
  job.ranks = 3;
  const Page page(job);
  check_page(page, job);
}

TEST_CASE("names that look like markup and scripts are shown as they are") {
  TrainingJob job;
  job.ranks = 2;
  job.range = "</script><img src=x onerror=fail()>";
  job.host = "<b onclick=fail()>&amp;";
  const Page page(job);
  const Shown shown = page.show("search=onerror&match=1");
  CHECK(shown.data("matches") == std::to_string(job.ranks * job.steps));
  CHECK_THAT(shown.dom, !Contains("<img") && !Contains("<b onclick"));
  CHECK_THAT(shown.dom, Contains("&lt;img src=x onerror=fail()&gt;"));
}

TEST_CASE("a browser shows a timeline of 100 MB", "[large]") {
  TrainingJob job;
  job.ranks = 16;
  job.steps = steps_for(100'000'000, job.ranks);
  const Page page(job);
  CHECK(page.bytes() > 90'000'000);
  CHECK(page.page_bytes() < 15'000'000);
  check_page(page, job);
}
