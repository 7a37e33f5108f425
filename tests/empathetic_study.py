"""Computation of a small study of any design in one process, like Snakemake's jobs in order."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from packed_results import prepare_data
from small_models import make_model
from tasktransfer.config import TINY
from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Stage
from tasktransfer.data.cache import read_instances, read_manifest
from tasktransfer.designs import get_design, open_study
from tasktransfer.designs.commands import write_collected_tables, write_statistics
from tasktransfer.encoding.encode import encode_dataset
from tasktransfer.jobs import node_jobs
from tasktransfer.results.study import Study
from tasktransfer.training.build import build_model_folder
from tasktransfer.training.job import Job
from tasktransfer.training.run import train_stage


def make(study: Study, nodes: Iterable[Node] | None = None) -> None:
    """Compute data, models and every node of a study. Tiny models are random, not pre-trained.

    Args:
        nodes: the nodes to compute, in the order of the plan; None for all.
    """
    design = get_design(study.config)
    _prepare(study)
    for node in study.plan.nodes if nodes is None else nodes:
        if isinstance(node, Data):
            node_jobs.derive_data(study, node, design)
        elif isinstance(node, Fit):
            node_jobs.fit_node(study, node, design)
        elif isinstance(node, Stage):
            encoded = _encoded(study, node.data, node.model.name)
            train_stage(_job(study, node, encoded))
        else:
            _evaluate(study, node)


def make_with_statistics(config: dict[str, Any], file: Path) -> Study:
    """Write a config to a file, and compute its study, tables and statistics."""
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    study = open_study(file)
    make(study)
    write_collected_tables(get_design(study.config), study, complete=True)
    write_statistics(get_design(study.config), study)
    return study


def _prepare(study: Study) -> None:
    prepare_data(study)
    for model in study.config.models:
        folder = study.get_created_model_folder(model.name)
        if model.built is not None and not Path(folder).exists():
            texts = [Path(each) for each in study.list_text_folders(folder)]
            weights = study.revisions.models[model.name].weights
            build_model_folder(model.built, texts, Path(folder), weights, study.config.known_labels)
        elif model.checkpoint == TINY and not Path(folder).exists():
            make_model(model.family, _training_texts(study), Path(folder))


def _training_texts(study: Study) -> list[str]:
    folders = [Path(study.get_instances_folder(name)) for name in study.config.dataset_names]
    return [
        row.context
        for folder in folders
        for task, splits in read_manifest(folder).tasks.items()
        if splits["train"].samples
        for row in read_instances(folder, task, "train")
    ]


def _encoded(study: Study, data: Data, model: str) -> Path:
    folder = Path(study.get_encoded_folder(data, model))
    if not folder.exists():
        config = study.get_model_config(model)
        second = config.second
        encode_dataset(
            Path(study.get_cache_folder(data)), data.name, study.list_tasks(data),
            study.get_checkpoint_source(model), None,
            config.family, config.max_length + data.longer_by, folder, 1.0, fidelity=study.fidelity,
            beside=(study.get_checkpoint_source(second), None) if second else None,
        )  # fmt: skip
    return folder


def _job(study: Study, stage: Stage, encoded: Path) -> Job:
    starts = tuple(study.get_start_folder(start) for start in stage.starts if start.stage)
    design = get_design(study.config)
    return Job(
        stage=stage, encoded=encoded,
        base=study.get_checkpoint_source(stage.model.name), revision=None,
        out=Path(study.get_node_folder(stage)), save_checkpoint=True, threads=1,
        study=study.config.study, config_digest=study.config.digest, starts=starts,
        beside=study.get_second_encoder_source(stage.model.name),
        facts=design.facts(study.config), substitutes=design.substitutes(study.config),
    )  # fmt: skip


def _evaluate(study: Study, node: Evaluation) -> None:
    for data in node.read:
        for model in node.model_names:
            _encoded(study, data, model)
    node_jobs.evaluate_node(study, node, get_design(study.config), 1)
