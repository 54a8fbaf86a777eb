#pragma once
#define WAYPOINT(name)
