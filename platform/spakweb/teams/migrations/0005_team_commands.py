from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("teams", "0004_keep_days"),
    ]

    operations = [
        migrations.AddField(
            model_name="team",
            name="commands",
            field=models.TextField(blank=True, default=""),
        ),
    ]
