"""What serves tokens: real vLLM, any server that is up, or a simulator in virtual time; one seam for all."""
