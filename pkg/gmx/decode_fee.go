package gmx

import "perpkeeper/pkg/perp"

var feeEvents = []eventKind{
	{"KeeperExecutionFee", 1, ofAccount, decodeKeeperFee},
}

// decodeKeeperFee belongs to the keeper's own account: the signer that executed, not the one whose order it was.
func decodeKeeperFee(r *reader) {
	r.checkTopic(2, "keeper")
	r.emit(perp.KeeperPaid{Fee: perp.KeeperFee{Keeper: r.address("keeper"), Amount: r.uint("executionFeeAmount"),
		Stamp: r.stamp}})
}
