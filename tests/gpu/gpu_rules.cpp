// Asks the libraries of a GPU for each rule that libddl and the stand-ins assume: those of NVIDIA, or of AMD if
// DDL_TEST_GPU is hip.
//
//   gpu_rules            all of them, each in a process of its own: a line for each
//                        "pass|fail|skip<TAB>sentence<TAB>what was seen"
//   gpu_rules --list     the sentences
//   gpu_rules --device   the GPU, and the versions of its libraries: a line for each "what<TAB>which"
//
// Exit status: 0 if none failed, 1 if one failed or no GPU can be used, 2 wrong usage.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/command.h"
#include "base/command_output.h"
#include "base/shared_library.h"
#include "gpu/driver.h"
#include "gpu/rules.h"
#include "runtime/src/backend/nccl/nccl_library.h"

namespace ddl::gpu_rules {

void Other::put(const void* data, std::size_t bytes) {
  if (::send(fd_.get(), data, bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes))
    throw Broken("the other process has gone");
}
void Other::get(void* data, std::size_t bytes) {
  if (::recv(fd_.get(), data, bytes, 0) != static_cast<ssize_t>(bytes))
    throw Broken("the other process has gone");
}
void Other::wait_end() {
  char byte = 0;
  while (::recv(fd_.get(), &byte, 1, 0) > 0) {
  }
}

namespace {

/// A rule that waits for ever has failed by then.
constexpr std::chrono::seconds kPatience{20};
/// The number that the socket has in the second process.
constexpr int kSocket = 3;

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> rules;
    for (const auto& some : {driver_rules(), process_rules(), nccl_rules()})
      rules.insert(rules.end(), some.begin(), some.end());
    return rules;
  }();
  return all;
}

std::string one_line(std::string text) {
  for (char& c : text) c = c == '\n' || c == '\t' || c == '|' ? ' ' : c;
  return text;
}

/// Starts this program again as the second process of a rule.
Result<Child> start_assistant(const std::string& number, int socket) {
  Command command{.argv = {"/proc/self/exe", "--assist", number}};
  command.streams = {kNullStream, kNullStream, 2};
  command.inherited = {{socket, kSocket}};
  command.group = Command::Group::kOfParent;  // which is killed as a whole
  return Child::start(command);
}

/// In a process of its own. Returns what the parent prints.
std::string answer_of(const Rule& rule, const std::string& number) {
  std::optional<Child> assistant;
  try {
    driver().use_gpu();
    if (rule.assist == nullptr) return "pass\t" + rule.answer(nullptr);
    auto sockets = make_socket_pair(SOCK_SEQPACKET);
    if (!sockets) throw Skipped(sockets.error().message());
    auto started = start_assistant(number, sockets->second.get());
    if (!started) throw Skipped(started.error().message());
    assistant.emplace(std::move(*started));
    sockets->second.reset();
    Other other(std::move(sockets->first));
    return "pass\t" + rule.answer(&other);
  } catch (const Skipped& skipped) {
    return std::string("skip\t") + skipped.what();
  } catch (const std::exception& broken) {
    return std::string("fail\t") + broken.what();
  }
}

int assist(const Rule& rule) {
  try {
    driver().use_gpu();
    Other other{UniqueFd(kSocket)};
    rule.assist(other);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_rules: the second process: %s\n", error.what());
    return 1;
  }
}

/// "pass", "fail" or "skip", a tab, and what was seen.
std::string ask(std::size_t number) {
  const auto output = command_output({"/proc/self/exe", "--answer", std::to_string(number)}, "", kPatience);
  if (!output) {
    return output.error().code() == ErrorCode::kTimeout
               ? "fail\tit waited for ever, or for more than " + std::to_string(kPatience.count()) + " s"
               : "fail\t" + output.error().message();
  }
  if (!output->err.empty()) (void)std::fputs(output->err.c_str(), stderr);
  if (WIFSIGNALED(output->wait_status))
    return "fail\tthe process died of signal " + std::to_string(WTERMSIG(output->wait_status));
  return output->out.empty() ? "fail\tthe process ended without an answer" : output->out;
}

int ask_all() {
  bool failed = false;
  for (std::size_t i = 0; i < all_rules().size(); ++i) {
    const std::string answer = ask(i);
    const std::size_t tab = answer.find('\t');
    failed = failed || answer.starts_with("fail");
    std::printf("%s\t%s\t%s\n", answer.substr(0, tab).c_str(), all_rules()[i].sentence,
                one_line(answer.substr(tab + 1)).c_str());
    (void)std::fflush(stdout);
  }
  return failed ? 1 : 0;
}

int describe_device() {
  try {
    driver().use_gpu();
    for (const auto& [what, which] : driver().description())
      std::printf("%s\t%s\n", what.c_str(), which.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  const auto nccl = runtime::NcclLibrary::load(is_hip() ? "librccl.so.1" : "libnccl.so.2");
  std::printf("%s\t%s\n", is_hip() ? "RCCL" : "NCCL",
              nccl ? runtime::nccl_version_text((*nccl)->version()).c_str()
                   : one_line(nccl.error().message()).c_str());
  std::string found = "none";
  const std::vector<const char*> compilers =
      is_hip() ? std::vector{"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5"}
               : std::vector{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
  for (const char* const file : compilers) {
    if (found == "none" && SharedLibrary::load(file)) found = file;
  }
  std::printf("%s\t%s\n", is_hip() ? "hipRTC" : "NVRTC", found.c_str());
  return 0;
}

}  // namespace
}  // namespace ddl::gpu_rules

int main(int argc, char** argv) {
  using namespace ddl::gpu_rules;  // NOLINT(google-build-using-namespace)
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode.empty()) return ask_all();
  if (mode == "--list") {
    for (const Rule& rule : all_rules()) std::printf("%s\n", rule.sentence);
    return 0;
  }
  if (mode == "--device") return describe_device();
  const auto number = argc > 2 ? static_cast<std::size_t>(std::atoi(argv[2])) : all_rules().size();
  if ((mode != "--answer" && mode != "--assist") || number >= all_rules().size()) {
    std::fprintf(stderr, "usage: gpu_rules [--list|--device]\n");
    return 2;
  }
  if (mode == "--assist") return assist(all_rules()[number]);
  std::printf("%s", answer_of(all_rules()[number], argv[2]).c_str());
  (void)std::fflush(stdout);
  std::_Exit(0);  // exit handlers of a library whose rule does not hold may wait
}
