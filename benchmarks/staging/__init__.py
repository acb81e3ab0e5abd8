"""Staging beside boto3, obstore, s5cmd and rclone, against an S3 that costs next to nothing."""
