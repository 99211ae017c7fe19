// The files that the header of generated kernels is made of.
#pragma once

namespace tensorsmith::codegen {

extern const char* const kKernelAbiText;
extern const char* const kHelpersText;
extern const char* const kVectorMathText;

}  // namespace tensorsmith::codegen
