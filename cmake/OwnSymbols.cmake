# cmake -DNM=... -DOWN=<regex> -DOBJECTS=<files> -P OwnSymbols.cmake
#
# Objects compiled for newer processors than the program asks for must define nothing that other objects might define
# too, as every inline function of a header is: the linker keeps one of them, and the program would then die on an older
# processor in code that looks innocent. Fails if a symbol that can be shared does not match OWN.
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} --demangle --defined-only ${object} OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" lines "${listing}")
  foreach(line IN LISTS lines)
    if(line MATCHES "^[0-9a-f]+ [A-Zuvw] (.*)$")
      set(symbol "${CMAKE_MATCH_1}")
      if(NOT symbol MATCHES "${OWN}|^DW\\.ref\\.__gxx_personality_v0$")
        message(SEND_ERROR "${object} defines '${symbol}', which others may define too")
      endif()
    endif()
  endforeach()
endforeach()
