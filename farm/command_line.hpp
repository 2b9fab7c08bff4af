// From argv to a command and from its errors to an exit code.
#pragma once

namespace manyworlds::farm {

/// The whole of main(). Must be called before anything starts a thread: commands that simulate fork their zygote first.
int command_line(int argc, char** argv);

}  // namespace manyworlds::farm
