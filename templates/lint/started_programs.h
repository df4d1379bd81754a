// What a command line starts in the end: behind env, nohup and the like, in a container, or by a shell's -c.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "templates/lint/shell_commands.h"

namespace ddl::templates {

using Words = std::span<const std::string>;

std::vector<std::string> texts_of(const std::vector<ShellWord>& words);

/// From the program on: without NAME=value, env, exec, nohup, time, timeout and the like, and their options. Pure.
Words without_prefixes(Words words);
/// The words behind the options. with_value: options whose value is the next word. The value of another one is taken
/// for the first word, which then starts nothing that is known here.
Words behind_options(Words words, std::span<const std::string_view> with_value);
/// What mpirun starts. Of two programs, separated by :, the first.
Words program_of_mpirun(Words words);
bool is_mpirun(std::string_view word);
/// Whether the words start a container (singularity exec, apptainer run, shifter, podman and the like).
bool is_container(Words words);

/// The command lines that these words start, each from its program on: the words themselves, what a container or
/// conda run starts, and the commands in a shell's -c instead of the shell. Pure.
std::vector<std::vector<std::string>> started_programs(Words words);
/// The text that a shell is to run by -c; empty if these words are not a shell with one.
std::string_view text_for_shell(Words words);

/// Of "python3 -u -m MODULE ARGUMENTS...", from the module on; empty if the words start no module. Pure.
Words module_of_python(Words program);

/// A program that starts several ranks on the node, and on other nodes only if it is started or told of there.
enum class NodeLauncher { kNone, kTorchrun, kAccelerate, kDeepspeed, kHorovodrun };
/// Of a command line from its program on.
NodeLauncher node_launcher(Words program);
/// "torchrun", "accelerate launch"
std::string_view name_of(NodeLauncher launcher);

}  // namespace ddl::templates
