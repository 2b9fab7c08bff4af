// The main program. Everything else is in the command-line library, so that tests can link it.
#include "farm/verbs/entry/command_line.hpp"

int main(int argc, char** argv) {
  return manyworlds::farm::command_line(argc, argv);
}
