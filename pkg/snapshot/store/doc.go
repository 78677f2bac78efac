// Package store keeps snapshots: as files in a folder, or as objects of a bucket by the S3 API. Either way a name has
// its whole content or none: a file is written under another name, synced and renamed; an object appears when its
// upload is completed.
package store
