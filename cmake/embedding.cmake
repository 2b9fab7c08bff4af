# Data files compiled in, so that the program has them wherever it is. Included, it offers manyworlds_embed(); run with
# `cmake -P`, it writes the generated source file.
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  file(GLOB files RELATIVE ${FOLDER} ${FOLDER}/${PATTERN})
  list(SORT files)
  set(rows "")
  foreach(file IN LISTS files)
    file(READ ${FOLDER}/${file} text)
    string(APPEND rows "      {")
    foreach(part IN LISTS NAMED_BY)
      get_filename_component(name ${file} ${part})
      string(APPEND rows "\"${name}\", ")
    endforeach()
    string(APPEND rows "R\"text(${text})text\"},\n")
  endforeach()
  string(REGEX REPLACE "::[^:]*$" "" namespace ${FUNCTION})
  string(REGEX REPLACE "^.*::" "" function ${FUNCTION})
  file(WRITE ${OUTPUT} "// Made by cmake/embedding.cmake; do not edit.
#include \"${HEADER}\"

namespace ${namespace} {

const std::vector<${TYPE}>& ${function}() {
  static const std::vector<${TYPE}> files{
${rows}  };
  return files;
}

}  // namespace ${namespace}
")
  return()
endif()

# manyworlds_embed(TARGET FOLDER F PATTERN P NAMED_BY PART... HEADER H TYPE T FUNCTION NAMESPACE::NAME): adds to TARGET
# the function that H declares as `const std::vector<T>& NAME()`. A row is of one file of F that fits P: the PARTs of its
# name, as get_filename_component calls them, and its text; rows are sorted by path.
function(manyworlds_embed target)
  cmake_parse_arguments(ARG "" "FOLDER;PATTERN;HEADER;TYPE;FUNCTION" "NAMED_BY" ${ARGN})
  file(GLOB files CONFIGURE_DEPENDS ${ARG_FOLDER}/${ARG_PATTERN})
  string(REGEX REPLACE "^.*::" "" name ${ARG_FUNCTION})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -D FOLDER=${ARG_FOLDER} -D PATTERN=${ARG_PATTERN} -D "NAMED_BY=${ARG_NAMED_BY}"
            -D HEADER=${ARG_HEADER} -D TYPE=${ARG_TYPE} -D FUNCTION=${ARG_FUNCTION} -D OUTPUT=${output}
            -P ${CMAKE_SOURCE_DIR}/cmake/embedding.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embedding.cmake
    COMMENT "Compiling ${ARG_PATTERN} of ${ARG_FOLDER} in" VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()

# Pages and the chart library are compiled in, so that what the program writes needs nothing from elsewhere.
function(manyworlds_embed_pages target)
  manyworlds_embed(${target} FOLDER ${CMAKE_SOURCE_DIR}/io/pages PATTERN * NAMED_BY NAME
                   HEADER io/report/page_assets.hpp TYPE PageAsset FUNCTION manyworlds::io::page_files)
  get_filename_component(chart_folder ${CHART_JS} DIRECTORY)
  get_filename_component(chart_file ${CHART_JS} NAME)
  manyworlds_embed(${target} FOLDER ${chart_folder} PATTERN ${chart_file} NAMED_BY NAME
                   HEADER io/report/page_assets.hpp TYPE PageAsset FUNCTION manyworlds::io::chart_library)
endfunction()

function(manyworlds_embed_measurements target)
  manyworlds_embed(${target} FOLDER ${CMAKE_SOURCE_DIR}/experiments/measured PATTERN *.csv NAMED_BY NAME_WLE
                   HEADER experiments/measured/tables.hpp TYPE CompiledTable
                   FUNCTION manyworlds::experiments::measured::compiled_tables)
endfunction()
