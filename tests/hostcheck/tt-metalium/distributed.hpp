#include <tt-metalium/declarations.hpp>
