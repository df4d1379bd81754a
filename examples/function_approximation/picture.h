// What the example draws: the target, the fits, and which rank saw which points.
#pragma once

#include <string>
#include <vector>

#include <Eigen/Core>

#include "plot.h"
#include "target.h"

namespace fit {

/// fits: one column per curve, with a value for each point of grid. A single column is the fit of all ranks together;
/// with one column per part, each is the fit of one rank and is drawn dashed outside of that rank's part.
Plot fit_picture(const std::vector<Part>& parts, const Eigen::RowVectorXd& grid, const Eigen::MatrixXd& fits,
                 const std::string& title, const std::string& subtitle);

}  // namespace fit
