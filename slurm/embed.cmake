# Turns the batch templates into one C++ source: cmake -DFOLDER=... -DOUTPUT=... -P embed.cmake
file(GLOB files RELATIVE ${FOLDER} ${FOLDER}/*.sh)
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  file(READ ${FOLDER}/${file} text)
  string(APPEND rows "      {\"${file}\", R\"script(${text})script\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made from slurm/ by embed.cmake.
#include \"farm/batch_scripts.hpp\"

namespace manyworlds::farm {

const std::vector<BatchTemplate>& batch_templates() {
  static const std::vector<BatchTemplate> templates{
${rows}  };
  return templates;
}

}  // namespace manyworlds::farm
")
