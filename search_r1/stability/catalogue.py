"""Every detector: what it watches, its defaults, and why. configs/base.yaml repeats the defaults.

The defaults stay quiet on healthy runs, also short ones: they alarm on what a person would call
broken, not on what looks unusual.
"""

from typing import Final

from search_r1.stability.detector import Action, Detector, DetectorSettings, Measure

_LLD: Final = "Deng et al. 2025, On GRPO Collapse in Search-R1 (arXiv 2512.04220)"
_ENTROPY: Final = "Cui et al. 2025, The Entropy Mechanism of RL for Reasoning (arXiv 2505.22617)"

_ALL: Final = (
    Detector(
        name="non_finite",
        signal="non_finite",
        known_before_update=True,
        settings=DetectorSettings(action=Action.SKIP_UPDATE, threshold=0.0, window=1, patience=1),
        reason=(
            "One NaN among log-probabilities, advantages, KL, losses or gradients spreads to every "
            "weight with the next update. There is no normal amount of it, hence no window."
        ),
        source="verl's FSDP engine skips an update for the gradient's norm alone",
        remedy="a lower actor_rollout_ref.actor.optim.lr; look for the first metric that is NaN",
    ),
    Detector(
        name="entropy_collapse",
        signal="entropy",
        measure=Measure.SHARE_OF_FIRST,
        is_high=False,
        floor=0.01,
        settings=DetectorSettings(threshold=0.1, window=5, patience=3),
        reason=(
            "Below a tenth of its first entropy a policy hardly explores: all samples of a "
            "question become the same, and with them the advantages zero. A slow fall is normal."
        ),
        source=_ENTROPY,
        remedy="+remedies=clip_higher, or actor_rollout_ref.actor.entropy_coeff=0.001",
    ),
    Detector(
        name="entropy_explosion",
        signal="entropy",
        measure=Measure.SHARE_OF_FIRST,
        floor=0.05,
        settings=DetectorSettings(threshold=3.0, window=5, patience=3),
        reason=(
            "Training sharpens a policy. Three times its first entropy is the last phase of a "
            "collapse: unlikely tokens, greater gradients, text that falls apart."
        ),
        source=_LLD,
        remedy="+remedies=likelihood_preserving, +remedies=kl_target, or a lower optim.lr",
    ),
    Detector(
        name="likelihood_drop",
        signal="rewarded_logprob",
        measure=Measure.FALL_FROM_PEAK,
        settings=DetectorSettings(threshold=0.3, window=10, patience=5),
        reason=(
            "Right trajectories that become less likely, in nats a token, precede a collapse by "
            "many steps, while the reward still rises. 0.3 is a third more perplexity."
        ),
        source=_LLD,
        remedy="+remedies=likelihood_preserving, or a lower optim.lr",
    ),
    Detector(
        name="repetition",
        signal="repetition",
        settings=DetectorSettings(threshold=0.3, window=5, patience=3),
        reason=(
            "The share of 4-grams that their own turn has said before; loops earn the same reward "
            "as thought until they fill the budget. Fluent text has below 0.05."
        ),
        source="Welleck et al. 2020, Neural Text Generation with Unlikelihood Training (rep-n)",
        remedy="+remedies=kl_target, or a lower optim.lr; read the run's trajectories",
    ),
    Detector(
        name="thinking_vanishes",
        signal="think_words",
        measure=Measure.SHARE_OF_FIRST,
        is_high=False,
        floor=3.0,
        settings=DetectorSettings(threshold=0.1, window=5, patience=3),
        reason=(
            "A reward of the answer alone never asks for thought. Below a tenth of the words that "
            "a turn began with, the policy has stopped to reason, whatever the reward says."
        ),
        source="Jin et al. 2025, Search-R1 (arXiv 2503.09516), section 5.3 on response length",
        remedy="a format reward, +remedies=kl_target, or a lower optim.lr",
    ),
    Detector(
        name="search_vanishes",
        signal="searches",
        measure=Measure.SHARE_OF_PEAK,
        is_high=False,
        floor=0.2,
        settings=DetectorSettings(threshold=0.1, window=5, patience=3),
        reason=(
            "A policy that answers from memory never learns to search again, for it no longer "
            "samples a search. A tenth of the most it ever searched is as good as none."
        ),
        source="Jin et al. 2025, Search-R1 (arXiv 2503.09516), section 5.3 on valid searches",
        remedy="a reward for retrieval, +remedies=kl_target, or a lower optim.lr",
    ),
    Detector(
        name="search_saturates",
        signal="search_load",
        settings=DetectorSettings(threshold=0.95, window=5, patience=3),
        reason=(
            "Where nearly every trajectory spends its whole budget of searches, the number of "
            "searches follows no question: the policy has learnt to search, not when to stop."
        ),
        source="Wang et al. 2025, Acting Less is Reasoning More (arXiv 2504.14870)",
        remedy="a cost of a search in the reward, or a greater search.max_searches",
    ),
    Detector(
        name="ratio_tail",
        signal="ratio_tail",
        known_before_update=True,
        settings=DetectorSettings(threshold=0.01, window=1, patience=3),
        reason=(
            "The share of tokens to which trainer and engine give probabilities that differ by "
            "more than a factor of 2. Rounding makes a few in ten thousand; one in a hundred "
            "means that the batch is off-policy, and its gradient wrong."
        ),
        source="Yao et al. 2025, Your Efficient RL Framework Secretly Brings You Off-Policy RL",
        remedy="+remedies=truncated_is; are engine and trainer at the same weights and dtype?",
    ),
    Detector(
        name="equal_groups",
        signal="equal_groups",
        settings=DetectorSettings(threshold=0.9, window=5, patience=3),
        reason=(
            "A group whose trajectories all earn the same has no advantage. With nine groups in "
            "ten like that, little but KL and noise moves the weights."
        ),
        source="Yu et al. 2025, DAPO (arXiv 2503.14476), dynamic sampling",
        remedy="+remedies=filter_groups, easier or harder questions, or a greater rollout.n",
    ),
)

DETECTORS: Final = {detector.name: detector for detector in _ALL}
