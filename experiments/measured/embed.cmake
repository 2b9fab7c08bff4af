# Turns the tables of measurements into one C++ source: cmake -DFOLDER=... -DOUTPUT=... -P embed.cmake
file(GLOB files RELATIVE ${FOLDER} ${FOLDER}/*.csv)
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  file(READ ${FOLDER}/${file} text)
  get_filename_component(name ${file} NAME_WLE)
  string(APPEND rows "      {\"${name}\", R\"table(${text})table\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made from experiments/measured by embed.cmake.
#include \"experiments/measured/tables.hpp\"

namespace manyworlds::experiments::measured {

const std::vector<CompiledTable>& compiled_tables() {
  static const std::vector<CompiledTable> tables{
${rows}  };
  return tables;
}

}  // namespace manyworlds::experiments::measured
")
