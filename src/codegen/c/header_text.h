// Texts of the files that the headers of generated kernels consist of.
#pragma once

namespace tensorsmith::codegen {

extern const char* const kKernelAbiText;
extern const char* const kC99Text;
extern const char* const kHelpersText;
extern const char* const kVectorsText;
extern const char* const kVectorMathText;
extern const char* const kOpenClText;
extern const char* const kCudaText;
extern const char* const kWarpgroupText;

}  // namespace tensorsmith::codegen
