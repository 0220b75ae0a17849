# Writes OUT, a C file with `const char sql_<name>[]` for each of FILES (<number>_<name>.sql), so that the programs carry
# the SQL text and need no files beside them. Called by CMake at build time.
set(text "/* Made from schema/sql by analyzer/embed.cmake. */\n#include \"analyzer/sql_text.h\"\n")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME_WE)
  string(REGEX REPLACE "^[0-9]+_" "" name ${name})
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND text "const char sql_${name}[] = {${bytes}0};\n")
endforeach()
file(WRITE ${OUT} "${text}")
