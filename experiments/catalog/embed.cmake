# Turns the catalog's data files into one C++ source: cmake -DFOLDER=... -DOUTPUT=... -P embed.cmake
file(GLOB files RELATIVE ${FOLDER} ${FOLDER}/*/*.yaml)
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  file(READ ${FOLDER}/${file} text)
  get_filename_component(kind ${file} DIRECTORY)
  get_filename_component(name ${file} NAME_WLE)
  string(APPEND rows "      {\"${kind}\", \"${name}\", R\"yaml(${text})yaml\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made from experiments/catalog by embed.cmake.
#include \"experiments/catalog.hpp\"

namespace manyworlds::experiments {

const std::vector<CatalogFile>& compiled_catalog() {
  static const std::vector<CatalogFile> files{
${rows}  };
  return files;
}

}  // namespace manyworlds::experiments
")
