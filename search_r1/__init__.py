"""Search-R1: teach a language model when to search, what to search for and when to stop.

Read in the order of the data: `prompts`, `actions`, `retriever`, `trajectory`, `rollout`,
`rewards`; then `agent_loop`, which plugs the rollout into verl.
"""
