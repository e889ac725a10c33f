"""Table maintenance by policies, on the pipeline's Spark: compaction, manifests, snapshots, orphan files."""
