package perp

// KeepersCancel reports whether the contracts in force let a keeper cancel what has expired: from v2.2c on.
func KeepersCancel(rows Rows) bool { return versionInForce(rows) >= V22c }
