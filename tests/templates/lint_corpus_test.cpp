// The findings in the scripts of corpus/, compared with those that each script has at its end:
//
//   #: site lumi-g                  as with --site
//   #: 3 bad-time; 5 placeholder    lines and rules: each is right, and is found
//   #: 7 bad-time missed            it would be right, and is not found yet
//   #: 8 placeholder wrong          it is found, and should not be
//   #: none                         for a script without any
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "support/catch.h"
#include "templates/lint/lint.h"
#include "templates/profile/site_catalog.h"

using namespace ddl::templates;

namespace {

struct CorpusScript {
  std::string name;
  std::string text;
  std::string site;
  std::vector<std::string> expected;  ///< "3 bad-time", of those that are found
  int missed = 0;
  int wrong = 0;
};

CorpusScript read_corpus_script(const std::filesystem::path& file) {
  constexpr std::string_view kMark = "#: ";
  const auto text = ddl::read_file(file.string());
  REQUIRE(text);
  CorpusScript script{file.stem().string(), *text, "", {}};
  bool says_none = false;
  for (const std::string_view line : ddl::split(script.text, '\n')) {
    if (!line.starts_with(kMark)) continue;
    for (const std::string_view part : ddl::split(line.substr(kMark.size()), ';')) {
      const auto words = ddl::split(ddl::trim(part), ' ');
      says_none = says_none || words[0] == "none";
      if (words[0] == "none") continue;
      REQUIRE(words.size() > 1);
      const std::string_view kind = words.size() > 2 ? words[2] : "";
      if (words[0] == "site")
        script.site = words[1];
      else if (kind == "missed")
        ++script.missed;
      else
        script.expected.push_back(std::string(words[0]) + " " + std::string(words[1]));
      script.wrong += kind == "wrong" ? 1 : 0;
      CHECK((kind.empty() || kind == "missed" || kind == "wrong"));
    }
  }
  CHECK(says_none == (script.expected.empty() && script.missed == 0));
  std::sort(script.expected.begin(), script.expected.end());
  return script;
}

std::vector<CorpusScript> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(DDL_SOURCE_DIR "/tests/templates/corpus"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<CorpusScript> scripts;
  for (const auto& file : files) scripts.push_back(read_corpus_script(file));
  return scripts;
}

std::string percent(std::size_t part, std::size_t whole) {
  return std::to_string(part) + " of " + std::to_string(whole) + ", " + std::to_string(100 * part / whole) +
         " %";
}

}  // namespace

TEST_CASE("the scripts of the corpus have the findings that they say") {
  const SiteCatalog catalog({}, [](const std::string& path) { return ddl::read_file(path); });
  const std::vector<CorpusScript> scripts = corpus();
  CHECK(scripts.size() >= 60);
  std::size_t found = 0;
  std::size_t wrong = 0;
  std::size_t missed = 0;
  for (const CorpusScript& script : scripts) {
    INFO(script.name << "\n" << script.text);
    const auto site = script.site.empty() ? ddl::Result<SiteProfile>(SiteProfile{})
                                          : catalog.find(script.site, nodes_of_script(script.text));
    REQUIRE(site);
    std::vector<std::string> findings;
    for (const LintFinding& finding : lint_script(script.text, script.site.empty() ? nullptr : &*site))
      findings.push_back(std::to_string(finding.line) + " " + finding.rule);
    std::sort(findings.begin(), findings.end());
    CHECK(findings == script.expected);
    found += script.expected.size();
    wrong += script.wrong;
    missed += script.missed;
  }
  std::cout << "corpus of " << scripts.size() << " scripts: precision " << percent(found - wrong, found)
            << "; recall " << percent(found - wrong, found - wrong + missed) << "\n";
}
