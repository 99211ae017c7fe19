# Builds .deb packages with CPack, one for each component (scripts/build_packages). Files are installed relative to
# /usr.
set(TENSORSMITH_PACKAGE_CONTACT "Tensorsmith maintainers <maintainers@tensorsmith.example>" CACHE STRING
  "Maintainer of the packages, NAME <ADDRESS>")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tensorsmith)
set(CPACK_PACKAGE_VENDOR Tensorsmith)
set(CPACK_PACKAGE_CONTACT ${TENSORSMITH_PACKAGE_CONTACT})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL runtime development command)
if(TENSORSMITH_TORCH)
  list(APPEND CPACK_COMPONENTS_ALL neural)
endif()
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/packages/add_documents.cmake)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(package_version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libtensorsmith-runtime)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
# Debian requires this trigger in addition to the scripts that CPack makes.
set(control ${PROJECT_BINARY_DIR}/generated/packages)
file(WRITE ${control}/triggers "activate-noawait ldconfig\n")
file(WRITE ${control}/shlibs "libtensorsmith_runtime ${PROJECT_VERSION_MAJOR} libtensorsmith-runtime (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${control}/triggers;${control}/shlibs")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "runs models that Tensorsmith has compiled
The library that programs with compiled neural networks load. It needs
neither the tuner nor LLVM.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtensorsmith-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libtensorsmith-runtime (= ${package_version})")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "headers of Tensorsmith's runtime, for CMake and pkg-config
What programs that run compiled neural networks are built with: the C
interface and its wrapper for C++.")

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME tensorsmith)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS libtensorsmith-runtime)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "libtensorsmith-dev, tensorsmith-neural")
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "makes neural networks faster on this machine
Takes an ONNX model, cuts it into fused tensor programs, searches a fast
schedule for each by measuring candidates under a learned cost model, and
compiles the result to a library that runs without the tuner.")

# The only part that needs libtorch.
set(CPACK_DEBIAN_NEURAL_PACKAGE_NAME tensorsmith-neural)
set(CPACK_DEBIAN_NEURAL_PACKAGE_SECTION science)
set(CPACK_DEBIAN_NEURAL_PACKAGE_DEPENDS "tensorsmith (= ${package_version})")
set(CPACK_COMPONENT_NEURAL_DESCRIPTION "neural cost models of Tensorsmith
The module that trains neural cost models and the language model of
schedules, and predicts with them. Tuning, compiling and running models
need none of it.")

include(CPack)
