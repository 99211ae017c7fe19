#include "ir/dtype.h"

#include "ir/analysis.h"
#include "ir/scalar.h"
#include "ir/simplify.h"
#include "ir/structural.h"
#include "ir/text.h"
#include "ir/verify_program.h"
