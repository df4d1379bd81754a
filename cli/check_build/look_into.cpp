#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/child_question.h"
#include "cli/check_build/capability_json.h"
#include "cli/check_build/probe.h"
#include "cli/check_build/scratch_folder.h"
#include "launcher/process/descendants.h"

namespace ddl::cli {

namespace {

constexpr std::chrono::seconds kClearing{2};

/// What looks have started may outlive them: it comes here, and is ended.
class Orphanage {
 public:
  Orphanage() { launcher::become_subreaper(); }
  ~Orphanage() {
    (void)launcher::kill_descendants(Deadline::after(kClearing), bystanders_);
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
  Orphanage(const Orphanage&) = delete;
  Orphanage& operator=(const Orphanage&) = delete;

 private:
  /// Of a shell that became this process.
  const std::vector<launcher::ProcessId> bystanders_ = launcher::descendants_of(::getpid());
};

Finding no_finding(const Error& error) {
  Finding finding;
  finding.detail = error.message();
  return finding;
}

Finding answer_of(Result<ChildQuestion>& child, Deadline deadline) {
  if (!child) return no_finding(child.error());
  const auto text = child->answer(deadline);
  if (!text) return no_finding(text.error());
  auto finding = finding_of(*text);
  return finding ? *std::move(finding) : no_finding(finding.error());
}

}  // namespace

std::vector<Capability> look_into(std::span<const Probe> probes, std::chrono::milliseconds patience) {
  // TMPDIR of the looks, as a job that is killed leaves files; goes when nobody is left who could write to it.
  const ScratchFolder folder;
  const Orphanage orphanage;
  const Deadline deadline = Deadline::after(patience);
  std::vector<Result<ChildQuestion>> children;
  children.reserve(probes.size());
  for (const Probe& probe : probes)
    children.push_back(ChildQuestion::ask([look = probe.look, &folder] {
      if (!folder.path().empty()) ::setenv("TMPDIR", folder.path().c_str(), 1);
      return to_text(look());
    }));
  std::vector<Capability> all;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const Probe& probe = probes[i];
    Capability one{probe.heading, probe.name, probe.key, probe.not_built == nullptr,
                   answer_of(children[i], deadline)};
    if (probe.not_built != nullptr) {
      // What is here, then, is less than what is missing.
      const std::string found = one.here.works ? "" : one.here.detail;
      one.here.detail = probe.not_built + (found.empty() ? "" : ", and " + found);
      one.here.remedy.clear();
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace ddl::cli
